/* The verifier, the meter, and the records of defaults. */
#include "flat_internal.h"

static const flat_field_t kVerifierFields[] = {
    FLAT_FIELD(kvt_verifier_options_t, draft_length, FLAT_U32),
    FLAT_FIELD(kvt_verifier_options_t, draft_max, FLAT_U32),
    FLAT_FIELD(kvt_verifier_options_t, width, FLAT_U32),
    FLAT_FIELD(kvt_verifier_options_t, fidelity, FLAT_I32),
    FLAT_FIELD(kvt_verifier_options_t, margin, FLAT_F32),
    FLAT_FIELD(kvt_verifier_options_t, first_token, FLAT_I32),
    FLAT_FIELD(kvt_verifier_options_t, vocabulary, FLAT_U32),
    FLAT_FIELD(kvt_verifier_options_t, prompt_tokens, FLAT_U64),
    FLAT_FIELD(kvt_verifier_options_t, max_tokens, FLAT_U64),
    FLAT_FIELD(kvt_verifier_options_t, full_ready, FLAT_U8),
    FLAT_FIELD(kvt_verifier_options_t, full_reload, FLAT_U8),
};

static const flat_field_t kActionFields[] = {
    FLAT_FIELD(kvt_action_t, kind, FLAT_I32),        FLAT_FIELD(kvt_action_t, reason, FLAT_I32),
    FLAT_FIELD(kvt_action_t, n, FLAT_U32),           FLAT_FIELD(kvt_action_t, width, FLAT_U32),
    FLAT_FIELD(kvt_action_t, pending, FLAT_I32),     FLAT_FIELD(kvt_action_t, draft_length, FLAT_U64),
    FLAT_FIELD(kvt_action_t, full_length, FLAT_U64),
};

static const flat_field_t kVerifierStatsFields[] = {
    FLAT_FIELD(kvt_verifier_stats_t, rounds, FLAT_U64),
    FLAT_FIELD(kvt_verifier_stats_t, drafted, FLAT_U64),
    FLAT_FIELD(kvt_verifier_stats_t, accepted, FLAT_U64),
    FLAT_FIELD(kvt_verifier_stats_t, committed, FLAT_U64),
    FLAT_FIELD(kvt_verifier_stats_t, fallbacks, FLAT_U64),
    FLAT_FIELD(kvt_verifier_stats_t, rechecks, FLAT_U64),
    FLAT_FIELD(kvt_verifier_stats_t, nonfinite, FLAT_U64),
    FLAT_FIELD(kvt_verifier_stats_t, acceptance, FLAT_F64),
    FLAT_FIELD(kvt_verifier_stats_t, mean_accepted, FLAT_F64),
};

int64_t kvtf_verifier_create(const uint8_t* options, size_t options_len, const uint8_t* eos, size_t eos_len,
                             uint8_t* err, size_t err_cap) {
  kvt_verifier_options_t values;
  kvt_verifier_options_init(&values, sizeof values);
  const int64_t read = FlatReadRecord("verifier", kVerifierFields, FLAT_COUNT(kVerifierFields), options,
                                      options_len, &values, FLAT_ERROR);
  if (read < 0) return read;
  const int64_t count = FlatArrayCount("eos", eos_len, sizeof(int32_t), FLAT_ERROR);
  if (count < 0) return count;
  int32_t* const aligned = FlatCopy(eos, eos_len);
  if (aligned == NULL) return FlatNoMemory(FLAT_ERROR, eos_len);
  values.eos = count > 0 ? aligned : NULL;
  values.eos_count = (size_t)count;
  kvt_verifier_t verifier = 0;
  const kvt_status_t status = kvt_verifier_create(&values, &verifier);
  const int64_t result = FlatResult(status, (int64_t)verifier, FLAT_ERROR);
  free(aligned);
  return result;
}

void kvtf_verifier_destroy(int64_t verifier) { kvt_verifier_destroy((uint64_t)verifier); }

/* Tokens that an action carries; see kvt_action_t. */
static size_t FlatActionTokens(const kvt_action_t* action) {
  switch (action->kind) {
    case KVT_ACTION_DRAFT:
      return action->width;
    case KVT_ACTION_VERIFY:
    case KVT_ACTION_RECHECK:
      return (size_t)action->n + 1;
    case KVT_ACTION_COMMIT:
      return action->n;
    case KVT_ACTION_FALLBACK:
      return 1;
    default:
      return 0;
  }
}

int64_t kvtf_verifier_next(int64_t verifier, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  kvt_action_t action = {.struct_size = sizeof action};
  const kvt_status_t status = kvt_verifier_next((uint64_t)verifier, &action);
  if (status != KVT_OK) return FlatResult(status, 0, FLAT_ERROR);
  size_t count = FlatActionTokens(&action);
  if (count > FLAT_COUNT(action.tokens)) count = FLAT_COUNT(action.tokens);
  const size_t head = KVTF_ACTION_WORDS * 8;
  const size_t bytes = head + count * sizeof(int32_t);
  if (bytes <= cap) {
    const int64_t word = (int64_t)count;
    FlatWriteRecord(kActionFields, FLAT_COUNT(kActionFields), &action, buf);
    memcpy(buf + KVTF_ACTION_TOKENS * 8, &word, sizeof word);
    memcpy(buf + head, action.tokens, count * sizeof(int32_t));
  }
  return (int64_t)bytes;
}

static int64_t FlatMicroseconds(int64_t microseconds, flat_error_t error) {
  if (microseconds >= 0) return 0;
  return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "microseconds is %lld", (long long)microseconds);
}

int64_t kvtf_verifier_drafted(int64_t verifier, const uint8_t* tokens, size_t tokens_len,
                              int64_t microseconds, uint8_t* err, size_t err_cap) {
  const int64_t count = FlatArrayCount("tokens", tokens_len, sizeof(int32_t), FLAT_ERROR);
  if (count < 0) return count;
  int64_t result = FlatMicroseconds(microseconds, FLAT_ERROR);
  if (result < 0) return result;
  int32_t* const aligned = FlatCopy(tokens, tokens_len);
  if (aligned == NULL) return FlatNoMemory(FLAT_ERROR, tokens_len);
  result =
      FlatResult(kvt_verifier_drafted((uint64_t)verifier, aligned, (size_t)count, (uint64_t)microseconds), 0,
                 FLAT_ERROR);
  free(aligned);
  return result;
}

int64_t kvtf_verifier_loaded(int64_t verifier, int64_t status, int64_t microseconds, uint8_t* err,
                             size_t err_cap) {
  const int64_t checked = FlatMicroseconds(microseconds, FLAT_ERROR);
  if (checked < 0) return checked;
  if (status != (kvt_status_t)status) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "status is %lld", (long long)status);
  }
  return FlatResult(kvt_verifier_loaded((uint64_t)verifier, (kvt_status_t)status, (uint64_t)microseconds), 0,
                    FLAT_ERROR);
}

int64_t kvtf_verifier_verified(int64_t verifier, const uint8_t* tokens, size_t tokens_len,
                               const uint8_t* gaps, size_t gaps_len, int64_t microseconds, uint8_t* err,
                               size_t err_cap) {
  const int64_t count = FlatArrayCount("tokens", tokens_len, sizeof(int32_t), FLAT_ERROR);
  if (count < 0) return count;
  int64_t result = FlatMicroseconds(microseconds, FLAT_ERROR);
  if (result < 0) return result;
  if (gaps_len != 0 && gaps_len != tokens_len) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "gaps are %zu bytes; %lld rows need %zu or none",
                      gaps_len, (long long)count, tokens_len);
  }
  int32_t* const aligned = FlatCopy(tokens, tokens_len);
  float* const aligned_gaps = FlatCopy(gaps, gaps_len);
  result = FlatNoMemory(FLAT_ERROR, tokens_len + gaps_len);
  if (aligned != NULL && aligned_gaps != NULL) {
    result = FlatResult(kvt_verifier_verified((uint64_t)verifier, aligned, gaps_len > 0 ? aligned_gaps : NULL,
                                              (size_t)count, (uint64_t)microseconds),
                        0, FLAT_ERROR);
  }
  free(aligned);
  free(aligned_gaps);
  return result;
}

int64_t kvtf_verifier_rechecked(int64_t verifier, int64_t token, int64_t microseconds, uint8_t* err,
                                size_t err_cap) {
  const int64_t checked = FlatMicroseconds(microseconds, FLAT_ERROR);
  if (checked < 0) return checked;
  if (token != (int32_t)token) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "token is %lld", (long long)token);
  }
  return FlatResult(kvt_verifier_rechecked((uint64_t)verifier, (int32_t)token, (uint64_t)microseconds), 0,
                    FLAT_ERROR);
}

int64_t kvtf_verifier_rolled_back(int64_t verifier, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_verifier_rolled_back((uint64_t)verifier), 0, FLAT_ERROR);
}

int64_t kvtf_verifier_committed(int64_t verifier, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_verifier_committed((uint64_t)verifier), 0, FLAT_ERROR);
}

int64_t kvtf_verifier_cancel(int64_t verifier, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_verifier_cancel((uint64_t)verifier), 0, FLAT_ERROR);
}

int64_t kvtf_verifier_stats(int64_t verifier, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  kvt_verifier_stats_t stats = {.struct_size = sizeof stats};
  const kvt_status_t status = kvt_verifier_stats((uint64_t)verifier, &stats);
  if (status != KVT_OK) return FlatResult(status, 0, FLAT_ERROR);
  return FlatRecordOut(kVerifierStatsFields, FLAT_COUNT(kVerifierStatsFields), &stats, buf, cap);
}

int64_t kvtf_fidelity_classify(const uint8_t* alone, size_t alone_len, const uint8_t* batched,
                               size_t batched_len, const uint8_t* widths, size_t widths_len,
                               const uint8_t* places, size_t places_len, int64_t vocabulary, uint8_t* buf,
                               size_t cap, uint8_t* err, size_t err_cap) {
  const int64_t rows = FlatArrayCount("widths", widths_len, sizeof(uint32_t), FLAT_ERROR);
  if (rows < 0) return rows;
  if (places_len != widths_len || alone_len != batched_len || vocabulary <= 0 || rows == 0 ||
      alone_len % ((size_t)rows * sizeof(float)) != 0 ||
      alone_len / ((size_t)rows * sizeof(float)) != (uint64_t)vocabulary) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT,
                      "%lld widths and %zu places of %lld logits do not fit %zu and %zu bytes of logits",
                      (long long)rows, places_len / sizeof(uint32_t), (long long)vocabulary, alone_len,
                      batched_len);
  }
  float* const left = FlatCopy(alone, alone_len);
  float* const right = FlatCopy(batched, batched_len);
  uint32_t* const wide = FlatCopy(widths, widths_len);
  uint32_t* const place = FlatCopy(places, places_len);
  int64_t result = FlatNoMemory(FLAT_ERROR, 2 * alone_len);
  if (left != NULL && right != NULL && wide != NULL && place != NULL) {
    int32_t level = KVT_FIDELITY_N;
    float margin = 0;
    const kvt_status_t status =
        kvt_fidelity_classify(left, right, (size_t)rows, (size_t)vocabulary, wide, place, &level, &margin);
    result = FlatResult(status, level, FLAT_ERROR);
    const double number = margin;
    if (status == KVT_OK && cap >= sizeof number) memcpy(buf, &number, sizeof number);
  }
  free(left);
  free(right);
  free(wide);
  free(place);
  return result;
}

/* Meter. */

int64_t kvtf_meter_create(int64_t runtime, uint8_t* err, size_t err_cap) {
  kvt_meter_t meter = 0;
  const kvt_status_t status = kvt_meter_create((uint64_t)runtime, &meter);
  return FlatResult(status, (int64_t)meter, FLAT_ERROR);
}

void kvtf_meter_destroy(int64_t meter) { kvt_meter_destroy((uint64_t)meter); }

int64_t kvtf_meter_json(int64_t meter, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  size_t needed = 0;
  const kvt_status_t status = kvt_meter_json((uint64_t)meter, (char*)buf, cap, &needed);
  return FlatNeeded(status, needed, FLAT_ERROR);
}

int64_t kvtf_meter_advice(int64_t meter, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  size_t needed = 0;
  const kvt_status_t status = kvt_meter_advice((uint64_t)meter, (char*)buf, cap, &needed);
  return FlatNeeded(status, needed, FLAT_ERROR);
}

int64_t kvtf_request_begin(int64_t meter, const uint8_t* way, size_t way_len, uint8_t* err, size_t err_cap) {
  uint64_t request = 0;
  const kvt_status_t status = kvt_request_begin((uint64_t)meter, (const char*)way, way_len, &request);
  return FlatResult(status, (int64_t)request, FLAT_ERROR);
}

/* Parts and counters are small numbers; others are ones that the library does not know. */
static int32_t FlatSmall(int64_t number) { return number == (int32_t)number ? (int32_t)number : -1; }

int64_t kvtf_request_part(int64_t meter, int64_t request, int64_t part, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_request_part((uint64_t)meter, (uint64_t)request, FlatSmall(part)), 0, FLAT_ERROR);
}

int64_t kvtf_request_attribute(int64_t meter, int64_t request, int64_t from, int64_t to, int64_t nanoseconds,
                               uint8_t* err, size_t err_cap) {
  if (nanoseconds < 0) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "nanoseconds is %lld", (long long)nanoseconds);
  }
  return FlatResult(kvt_request_attribute((uint64_t)meter, (uint64_t)request, FlatSmall(from), FlatSmall(to),
                                          (uint64_t)nanoseconds),
                    0, FLAT_ERROR);
}

int64_t kvtf_request_first_token(int64_t meter, int64_t request, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_request_first_token((uint64_t)meter, (uint64_t)request), 0, FLAT_ERROR);
}

int64_t kvtf_request_count(int64_t meter, int64_t request, int64_t counter, int64_t amount, uint8_t* err,
                           size_t err_cap) {
  if (amount < 0) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "amount is %lld", (long long)amount);
  }
  return FlatResult(
      kvt_request_count((uint64_t)meter, (uint64_t)request, FlatSmall(counter), (uint64_t)amount), 0,
      FLAT_ERROR);
}

int64_t kvtf_request_end(int64_t meter, int64_t request, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_request_end((uint64_t)meter, (uint64_t)request), 0, FLAT_ERROR);
}

/* Defaults: what the library's init functions fill in. */

int64_t kvtf_defaults(int64_t record, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  union {
    kvt_runtime_options_t runtime;
    kvt_model_options_t model;
    kvt_codec_options_t codec;
    kvt_frame_spec_t spec;
    kvt_view_t view;
    kvt_node_options_t node;
    kvt_verifier_options_t verifier;
    kvt_calibration_options_t calibration;
  } values;
  switch (record) {
    case KVTF_RECORD_RUNTIME:
      kvt_runtime_options_init(&values.runtime, sizeof values.runtime);
      return FlatRecordOut(kRuntimeFields, FLAT_COUNT(kRuntimeFields), &values, buf, cap);
    case KVTF_RECORD_MODEL:
      kvt_model_options_init(&values.model, sizeof values.model);
      return FlatRecordOut(kModelFields, FLAT_COUNT(kModelFields), &values, buf, cap);
    case KVTF_RECORD_CODEC:
      kvt_codec_options_init(&values.codec, sizeof values.codec);
      return FlatRecordOut(kCodecFields, FLAT_COUNT(kCodecFields), &values, buf, cap);
    case KVTF_RECORD_SPEC:
      kvt_frame_spec_init(&values.spec, sizeof values.spec);
      return FlatRecordOut(kSpecFields, FLAT_COUNT(kSpecFields), &values, buf, cap);
    case KVTF_RECORD_VIEW:
      kvt_view_init(&values.view, sizeof values.view);
      return FlatRecordOut(kViewFields, FLAT_COUNT(kViewFields), &values, buf, cap);
    case KVTF_RECORD_NODE:
      kvt_node_options_init(&values.node, sizeof values.node);
      return FlatRecordOut(kNodeFields, FLAT_COUNT(kNodeFields), &values, buf, cap);
    case KVTF_RECORD_VERIFIER:
      kvt_verifier_options_init(&values.verifier, sizeof values.verifier);
      return FlatRecordOut(kVerifierFields, FLAT_COUNT(kVerifierFields), &values, buf, cap);
    case KVTF_RECORD_CALIBRATION:
      kvt_calibration_options_init(&values.calibration, sizeof values.calibration);
      return FlatRecordOut(kCalibrationFields, FLAT_COUNT(kCalibrationFields), &values, buf, cap);
    default:
      return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "record is %lld; there are 1 to %d",
                        (long long)record, KVTF_RECORD_CALIBRATION);
  }
}
