/* Calibrations and profiles (experimental.h). */
#include "flat_internal.h"

typedef struct flat_calibration {
  flat_object_t object;
  kvt_calibration_t calibration;
  flat_rows_t rows;
} flat_calibration_t;

static void FlatCalibrationEnd(flat_object_t* object) {
  kvt_calibration_destroy(((flat_calibration_t*)object)->calibration);
  free(object);
}

static const flat_field_t kCalibrationFields[] = {
    FLAT_FIELD(kvt_calibration_options_t, group_layers, FLAT_U32),
    FLAT_FIELD(kvt_calibration_options_t, ratio_min, FLAT_U32),
    FLAT_FIELD(kvt_calibration_options_t, layer_begin, FLAT_U32),
    FLAT_FIELD(kvt_calibration_options_t, layer_end, FLAT_U32),
    FLAT_FIELD(kvt_calibration_options_t, head_begin, FLAT_U32),
    FLAT_FIELD(kvt_calibration_options_t, head_end, FLAT_U32),
};

static const flat_field_t kCalibrationInfoFields[] = {
    FLAT_FIELD(kvt_calibration_info_t, documents, FLAT_U32),
    FLAT_FIELD(kvt_calibration_info_t, tokens, FLAT_U64),
    FLAT_FIELD(kvt_calibration_info_t, nonfinite, FLAT_U64),
};

/* Enters a calibration that was made with `status`. */
static int64_t FlatCalibrationEnter(int64_t model, kvt_status_t status, kvt_calibration_t made,
                                    flat_error_t error) {
  if (status != KVT_OK) return FlatResult(status, 0, error);
  flat_calibration_t* const calibration = calloc(1, sizeof *calibration);
  int64_t result = calibration == NULL ? FlatNoMemory(error, sizeof *calibration)
                                       : FlatModelRows(model, &calibration->rows, error);
  if (result < 0) {
    free(calibration);
    kvt_calibration_destroy(made);
    return result;
  }
  calibration->object.type = FLAT_CALIBRATION;
  calibration->object.end = FlatCalibrationEnd;
  calibration->calibration = made;
  return FlatInsert(&calibration->object, error);
}

int64_t kvtf_calibration_create(int64_t model, const uint8_t* options, size_t options_len, uint8_t* err,
                                size_t err_cap) {
  kvt_calibration_options_t values;
  kvt_calibration_options_init(&values, sizeof values);
  const int64_t read = FlatReadRecord("calibration", kCalibrationFields, FLAT_COUNT(kCalibrationFields),
                                      options, options_len, &values, FLAT_ERROR);
  if (read < 0) return read;
  kvt_calibration_t made = 0;
  const kvt_status_t status = kvt_calibration_create((uint64_t)model, &values, &made);
  return FlatCalibrationEnter(model, status, made, FLAT_ERROR);
}

int64_t kvtf_calibration_restore(int64_t model, const uint8_t* saved, size_t saved_len, uint8_t* err,
                                 size_t err_cap) {
  kvt_calibration_t made = 0;
  const kvt_status_t status = kvt_calibration_restore((uint64_t)model, saved, saved_len, &made);
  return FlatCalibrationEnter(model, status, made, FLAT_ERROR);
}

void kvtf_calibration_destroy(int64_t calibration) { FlatLet(FlatRemove(calibration, FLAT_CALIBRATION)); }

int64_t kvtf_calibration_add(int64_t calibration, const uint8_t* view, size_t view_len, const uint8_t* bases,
                             size_t bases_len, const uint8_t* table, size_t table_len, uint8_t* memory,
                             size_t memory_cap, int64_t token_begin, int64_t token_count, uint8_t* err,
                             size_t err_cap) {
  if (token_begin < 0 || token_count < 0) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT,
                      "token_begin is %lld and token_count %lld; neither is negative", (long long)token_begin,
                      (long long)token_count);
  }
  flat_calibration_t* const found = FlatHold(calibration, FLAT_CALIBRATION);
  if (found == NULL) return FlatStale("calibration", calibration, FLAT_ERROR);
  flat_view_t built;
  const flat_view_args_t args = FLAT_VIEW_ARGS(memory, memory_cap);
  int64_t result = FlatViewBuild(&built, &found->rows, &args, FLAT_ERROR);
  if (result == 0) {
    const kvt_status_t status = kvt_calibration_add(found->calibration, &built.view, (uint64_t)token_begin,
                                                    (uint64_t)token_count, NULL);
    result = FlatResult(status, 0, FLAT_ERROR);
    FlatViewFree(&built);
  }
  FlatLet(found);
  return result;
}

int64_t kvtf_calibration_progress(int64_t calibration, uint8_t* buf, size_t cap, uint8_t* err,
                                  size_t err_cap) {
  flat_calibration_t* const found = FlatHold(calibration, FLAT_CALIBRATION);
  if (found == NULL) return FlatStale("calibration", calibration, FLAT_ERROR);
  kvt_calibration_info_t info = {.struct_size = sizeof info};
  const kvt_status_t status = kvt_calibration_progress(found->calibration, &info);
  const int64_t result =
      status != KVT_OK
          ? FlatResult(status, 0, FLAT_ERROR)
          : FlatRecordOut(kCalibrationInfoFields, FLAT_COUNT(kCalibrationInfoFields), &info, buf, cap);
  FlatLet(found);
  return result;
}

typedef kvt_status_t (*flat_calibration_out_fn)(kvt_calibration_t, uint8_t*, size_t, size_t*);

static int64_t FlatCalibrationOut(flat_calibration_out_fn function, int64_t calibration, uint8_t* buf,
                                  size_t cap, flat_error_t error) {
  flat_calibration_t* const found = FlatHold(calibration, FLAT_CALIBRATION);
  if (found == NULL) return FlatStale("calibration", calibration, error);
  size_t needed = 0;
  const kvt_status_t status = function(found->calibration, buf, cap, &needed);
  const int64_t result = FlatNeeded(status, needed, error);
  FlatLet(found);
  return result;
}

int64_t kvtf_calibration_save(int64_t calibration, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  return FlatCalibrationOut(kvt_calibration_save, calibration, buf, cap, FLAT_ERROR);
}

int64_t kvtf_calibration_finish(int64_t calibration, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  return FlatCalibrationOut(kvt_calibration_finish, calibration, buf, cap, FLAT_ERROR);
}

int64_t kvtf_profile_fingerprint(const uint8_t* profile, size_t profile_len, uint8_t* buf, size_t cap,
                                 uint8_t* err, size_t err_cap) {
  uint8_t fingerprint[KVT_FINGERPRINT_BYTES];
  const kvt_status_t status = kvt_profile_fingerprint(profile, profile_len, fingerprint);
  if (status != KVT_OK) return FlatResult(status, 0, FLAT_ERROR);
  return FlatCopyOut(fingerprint, sizeof fingerprint, buf, cap);
}

int64_t kvtf_profile_describe(const uint8_t* profile, size_t profile_len, uint8_t* buf, size_t cap,
                              uint8_t* err, size_t err_cap) {
  size_t needed = 0;
  const kvt_status_t status = kvt_profile_describe(profile, profile_len, (char*)buf, cap, &needed);
  return FlatNeeded(status, needed, FLAT_ERROR);
}

int64_t kvtf_profile_key(const uint8_t* fingerprint, size_t fingerprint_len, uint8_t* buf, size_t cap,
                         uint8_t* err, size_t err_cap) {
  if (fingerprint_len != KVT_FINGERPRINT_BYTES) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "fingerprint is %zu bytes; it is %d",
                      fingerprint_len, KVT_FINGERPRINT_BYTES);
  }
  uint8_t key[KVT_KEY_BYTES];
  const kvt_status_t status = kvt_profile_key(fingerprint, key);
  if (status != KVT_OK) return FlatResult(status, 0, FLAT_ERROR);
  return FlatCopyOut(key, sizeof key, buf, cap);
}

int64_t kvtf_profile_wrap(const uint8_t* profile, size_t profile_len, const uint8_t* digest,
                          size_t digest_len, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  uint8_t whole[KVT_NAMESPACE_DIGEST_BYTES];
  const int64_t checked = FlatFixed("digest", digest, digest_len, sizeof whole, whole, FLAT_ERROR);
  if (checked < 0) return checked;
  size_t needed = 0;
  const kvt_status_t status = kvt_profile_wrap(profile, profile_len, whole, buf, cap, &needed);
  return FlatNeeded(status, needed, FLAT_ERROR);
}

int64_t kvtf_profile_unwrap(const uint8_t* frame, size_t frame_len, uint8_t* buf, size_t cap, uint8_t* err,
                            size_t err_cap) {
  size_t needed = 0;
  const kvt_status_t status = kvt_profile_unwrap(frame, frame_len, buf, cap, &needed);
  return FlatNeeded(status, needed, FLAT_ERROR);
}
