/* Codecs and frames. */
#include "flat_internal.h"

typedef struct flat_codec {
  flat_object_t object;
  kvt_codec_t codec;
  flat_rows_t rows;
} flat_codec_t;

static void FlatCodecEnd(flat_object_t* object) {
  kvt_codec_destroy(((flat_codec_t*)object)->codec);
  free(object);
}

static const flat_field_t kCodecFields[] = {
    FLAT_FIELD(kvt_codec_options_t, group_tokens, FLAT_U32),
    FLAT_FIELD(kvt_codec_options_t, group_channels, FLAT_U32),
    FLAT_FIELD(kvt_codec_options_t, ratio, FLAT_U32),
};

int64_t kvtf_codec_create(int64_t model, const uint8_t* name, size_t name_len, const uint8_t* options,
                          size_t options_len, const uint8_t* profile, size_t profile_len, uint8_t* err,
                          size_t err_cap) {
  kvt_codec_options_t values;
  kvt_codec_options_init(&values, sizeof values);
  const int64_t read = FlatReadRecord("codec", kCodecFields, FLAT_COUNT(kCodecFields), options, options_len,
                                      &values, FLAT_ERROR);
  if (read < 0) return read;
  if (name_len > 0) {
    values.name = (const char*)name;
    values.name_len = name_len;
  }
  values.profile = profile_len > 0 ? profile : NULL;
  values.profile_len = profile_len;
  flat_codec_t* const codec = calloc(1, sizeof *codec);
  if (codec == NULL) return FlatNoMemory(FLAT_ERROR, sizeof *codec);
  codec->object.type = FLAT_CODEC;
  codec->object.end = FlatCodecEnd;
  int64_t result = FlatModelRows(model, &codec->rows, FLAT_ERROR);
  if (result == 0) {
    const kvt_status_t status = kvt_codec_create((uint64_t)model, &values, &codec->codec);
    result = FlatResult(status, 0, FLAT_ERROR);
  }
  if (result < 0) {
    free(codec);
    return result;
  }
  return FlatInsert(&codec->object, FLAT_ERROR);
}

void kvtf_codec_destroy(int64_t codec) { FlatLet(FlatRemove(codec, FLAT_CODEC)); }

static const flat_field_t kSpecFields[] = {
    FLAT_FIELD(kvt_frame_spec_t, layer_begin, FLAT_U32),  FLAT_FIELD(kvt_frame_spec_t, layer_end, FLAT_U32),
    FLAT_FIELD(kvt_frame_spec_t, exempt_first, FLAT_U32), FLAT_FIELD(kvt_frame_spec_t, exempt_last, FLAT_U32),
    FLAT_FIELD(kvt_frame_spec_t, token_begin, FLAT_U64),  FLAT_FIELD(kvt_frame_spec_t, token_count, FLAT_U64),
};

static int64_t FlatSpecBuild(kvt_frame_spec_t* spec, const uint8_t* record, size_t record_len,
                             const uint8_t* key, size_t key_len, const uint8_t* digest, size_t digest_len,
                             flat_error_t error) {
  kvt_frame_spec_init(spec, sizeof *spec);
  int64_t result =
      FlatReadRecord("spec", kSpecFields, FLAT_COUNT(kSpecFields), record, record_len, spec, error);
  if (result == 0) result = FlatFixed("key", key, key_len, sizeof spec->key, spec->key, error);
  if (result == 0) {
    result =
        FlatFixed("digest", digest, digest_len, sizeof spec->namespace_digest, spec->namespace_digest, error);
  }
  return result;
}

static const flat_field_t kReportFields[] = {
    FLAT_FIELD(kvt_codec_report_t, segments, FLAT_U32),
    FLAT_FIELD(kvt_codec_report_t, frame_bytes, FLAT_U64),
    FLAT_FIELD(kvt_codec_report_t, decoded_bytes, FLAT_U64),
    FLAT_FIELD(kvt_codec_report_t, nonfinite, FLAT_U64),
    FLAT_FIELD(kvt_codec_report_t, checksums, FLAT_U64),
};

/* What the codec calls need; ended by FlatCodecCallEnd. */
typedef struct flat_codec_call {
  flat_codec_t* codec;
  flat_view_t view;
  kvt_frame_spec_t spec;
} flat_codec_call_t;

static int64_t FlatCodecCallBegin(flat_codec_call_t* call, int64_t codec, const flat_view_args_t* view,
                                  flat_error_t error) {
  call->codec = FlatHold(codec, FLAT_CODEC);
  if (call->codec == NULL) return FlatStale("codec", codec, error);
  const int64_t built = FlatViewBuild(&call->view, &call->codec->rows, view, error);
  if (built < 0) FlatLet(call->codec);
  return built;
}

static void FlatCodecCallEnd(flat_codec_call_t* call) {
  FlatViewFree(&call->view);
  FlatLet(call->codec);
}

int64_t kvtf_codec_bound(int64_t codec, const uint8_t* view, size_t view_len, const uint8_t* bases,
                         size_t bases_len, const uint8_t* table, size_t table_len, uint8_t* memory,
                         size_t memory_cap, const uint8_t* spec, size_t spec_len, uint8_t* err,
                         size_t err_cap) {
  flat_codec_call_t call;
  const flat_view_args_t args = FLAT_VIEW_ARGS(memory, memory_cap);
  int64_t result = FlatSpecBuild(&call.spec, spec, spec_len, NULL, 0, NULL, 0, FLAT_ERROR);
  if (result == 0) result = FlatCodecCallBegin(&call, codec, &args, FLAT_ERROR);
  if (result < 0) return result;
  uint64_t bytes = 0;
  const kvt_status_t status = kvt_codec_bound(call.codec->codec, &call.view.view, &call.spec, &bytes);
  result = FlatResult(status, (int64_t)bytes, FLAT_ERROR);
  FlatCodecCallEnd(&call);
  return result;
}

int64_t kvtf_codec_encode(int64_t codec, const uint8_t* view, size_t view_len, const uint8_t* bases,
                          size_t bases_len, const uint8_t* table, size_t table_len, uint8_t* memory,
                          size_t memory_cap, const uint8_t* spec, size_t spec_len, const uint8_t* key,
                          size_t key_len, const uint8_t* digest, size_t digest_len, uint8_t* buf, size_t cap,
                          uint8_t* report, size_t report_cap, uint8_t* err, size_t err_cap) {
  flat_codec_call_t call;
  const flat_view_args_t args = FLAT_VIEW_ARGS(memory, memory_cap);
  int64_t result = FlatSpecBuild(&call.spec, spec, spec_len, key, key_len, digest, digest_len, FLAT_ERROR);
  if (result == 0) result = FlatCodecCallBegin(&call, codec, &args, FLAT_ERROR);
  if (result < 0) return result;
  size_t needed = 0;
  kvt_codec_report_t made = {.struct_size = sizeof made};
  const kvt_status_t status =
      kvt_codec_encode(call.codec->codec, &call.view.view, &call.spec, buf, cap, &needed, &made);
  result = FlatNeeded(status, needed, FLAT_ERROR);
  if (status == KVT_OK) FlatRecordOut(kReportFields, FLAT_COUNT(kReportFields), &made, report, report_cap);
  FlatCodecCallEnd(&call);
  return result;
}

int64_t kvtf_codec_decode(int64_t codec, const uint8_t* frame, size_t frame_len, const uint8_t* view,
                          size_t view_len, const uint8_t* bases, size_t bases_len, const uint8_t* table,
                          size_t table_len, uint8_t* memory, size_t memory_cap, const uint8_t* spec,
                          size_t spec_len, const uint8_t* key, size_t key_len, const uint8_t* digest,
                          size_t digest_len, uint8_t* report, size_t report_cap, uint8_t* err,
                          size_t err_cap) {
  flat_codec_call_t call;
  const flat_view_args_t args = FLAT_VIEW_ARGS(memory, memory_cap);
  int64_t result = FlatSpecBuild(&call.spec, spec, spec_len, key, key_len, digest, digest_len, FLAT_ERROR);
  if (result == 0) result = FlatCodecCallBegin(&call, codec, &args, FLAT_ERROR);
  if (result < 0) return result;
  kvt_codec_report_t made = {.struct_size = sizeof made};
  const kvt_status_t status =
      kvt_codec_decode(call.codec->codec, frame, frame_len, &call.spec, &call.view.view, &made);
  result = FlatResult(status, 0, FLAT_ERROR);
  if (status == KVT_OK) FlatRecordOut(kReportFields, FLAT_COUNT(kReportFields), &made, report, report_cap);
  FlatCodecCallEnd(&call);
  return result;
}

int64_t kvtf_frame_verify(const uint8_t* frame, size_t frame_len, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_frame_verify(frame, frame_len), 0, FLAT_ERROR);
}

int64_t kvtf_frame_describe(const uint8_t* frame, size_t frame_len, uint8_t* buf, size_t cap, uint8_t* err,
                            size_t err_cap) {
  size_t needed = 0;
  const kvt_status_t status = kvt_frame_describe(frame, frame_len, (char*)buf, cap, &needed);
  return FlatNeeded(status, needed, FLAT_ERROR);
}
