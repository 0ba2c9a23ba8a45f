/* Codecs, frames, and views over one piece of memory. A view is checked here, element by element of its
 * extremes, so that the library never leaves the memory that a host passed. */
#include "flat_internal.h"

typedef struct flat_codec {
  flat_object_t object;
  kvt_codec_t codec;
  uint32_t streams;
  uint32_t dims[2]; /* elements of a row, per stream */
} flat_codec_t;

static void FlatCodecEnd(flat_object_t* object) {
  kvt_codec_destroy(((flat_codec_t*)object)->codec);
  free(object);
}

/* Reads streams and row sizes from the model's canonical bytes (docs/keys.md). */
static int64_t FlatModelRows(int64_t model, flat_codec_t* codec, flat_error_t error) {
  uint8_t bytes[16 + 4 + 2 * (4 + 64) + 8 * 4 + 4 + 8 * 4096 + 16];
  size_t needed = 0;
  const kvt_status_t status = kvt_model_canonical((uint64_t)model, bytes, sizeof bytes, &needed);
  if (status != KVT_OK) return FlatResult(status, 0, error);
  uint32_t layout, len, words[8];
  size_t at = 16;
  memcpy(&layout, bytes + at, 4);
  at += 4;
  for (int i = 0; i < 2; ++i) { /* model_id and adapter */
    memcpy(&len, bytes + at, 4);
    at += 4 + (size_t)len;
  }
  memcpy(words, bytes + at, sizeof words);
  codec->streams = layout == KVT_LAYOUT_MLA ? 1 : 2;
  codec->dims[0] = words[2];
  codec->dims[1] = words[3];
  return 0;
}

static const flat_field_t kCodecFields[] = {
    FLAT_FIELD(kvt_codec_options_t, group_tokens, FLAT_U32),
    FLAT_FIELD(kvt_codec_options_t, group_channels, FLAT_U32),
};

int64_t kvtf_codec_create(int64_t model, const uint8_t* name, size_t name_len, const uint8_t* options,
                          size_t options_len, uint8_t* err, size_t err_cap) {
  kvt_codec_options_t values;
  kvt_codec_options_init(&values, sizeof values);
  const int64_t read = FlatReadRecord("codec", kCodecFields, FLAT_COUNT(kCodecFields), options, options_len,
                                      &values, FLAT_ERROR);
  if (read < 0) return read;
  if (name_len > 0) {
    values.name = (const char*)name;
    values.name_len = name_len;
  }
  flat_codec_t* const codec = calloc(1, sizeof *codec);
  if (codec == NULL) return FlatNoMemory(FLAT_ERROR, sizeof *codec);
  codec->object.type = FLAT_CODEC;
  codec->object.end = FlatCodecEnd;
  int64_t result = FlatModelRows(model, codec, FLAT_ERROR);
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

/* Views. */

typedef struct flat_view {
  kvt_view_t view;
  void** bases;
  int32_t* table;
} flat_view_t;

/* The four arguments of a view, as one. */
typedef struct flat_view_args {
  const uint8_t *record, *bases, *table;
  size_t record_len, bases_len, table_len;
  uint8_t* memory;
  size_t memory_cap;
} flat_view_args_t;

#define FLAT_VIEW_ARGS(memory, memory_cap) \
  ((flat_view_args_t){view, bases, table, view_len, bases_len, table_len, memory, memory_cap})

static const flat_field_t kViewFields[] = {
    FLAT_FIELD(kvt_view_t, element, FLAT_U32),           FLAT_FIELD(kvt_view_t, layer_begin, FLAT_U32),
    FLAT_FIELD(kvt_view_t, layer_end, FLAT_U32),         FLAT_FIELD(kvt_view_t, head_begin, FLAT_U32),
    FLAT_FIELD(kvt_view_t, head_end, FLAT_U32),          FLAT_FIELD(kvt_view_t, tokens, FLAT_U64),
    FLAT_FIELD(kvt_view_t, first_position, FLAT_U64),    FLAT_FIELD(kvt_view_t, token_stride[0], FLAT_I64),
    FLAT_FIELD(kvt_view_t, token_stride[1], FLAT_I64),   FLAT_FIELD(kvt_view_t, head_stride[0], FLAT_I64),
    FLAT_FIELD(kvt_view_t, head_stride[1], FLAT_I64),    FLAT_FIELD(kvt_view_t, element_stride[0], FLAT_I64),
    FLAT_FIELD(kvt_view_t, element_stride[1], FLAT_I64), FLAT_FIELD(kvt_view_t, page_stride[0], FLAT_I64),
    FLAT_FIELD(kvt_view_t, page_stride[1], FLAT_I64),    FLAT_FIELD(kvt_view_t, page_tokens, FLAT_U32),
};

__extension__ typedef __int128 flat_wide_t;

typedef struct flat_extent {
  flat_wide_t low, high; /* of the first byte of an element, from its base */
} flat_extent_t;

static void FlatStretch(flat_extent_t* extent, uint64_t steps, int64_t stride) {
  const flat_wide_t reach = steps > 1 ? (flat_wide_t)(steps - 1) * stride : 0;
  if (reach < 0) extent->low += reach;
  if (reach > 0) extent->high += reach;
}

static size_t FlatElementBytes(uint32_t element) {
  return element == KVT_ELEMENT_F32 ? 4 : element == KVT_ELEMENT_F16 || element == KVT_ELEMENT_BF16 ? 2 : 1;
}

/* The extent of stream `s` without its pages; with a table, `pages` gets that of the page starts. */
static int64_t FlatViewExtent(const kvt_view_t* view, const flat_codec_t* codec, int s, flat_extent_t* extent,
                              flat_error_t error) {
  *extent = (flat_extent_t){0, 0};
  uint64_t run = view->tokens;
  if (view->block_table_len > 0) {
    if (view->page_tokens == 0) {
      return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "page_tokens is 0 with a block table");
    }
    const uint64_t pages = (view->tokens + view->page_tokens - 1) / view->page_tokens;
    if (pages > view->block_table_len) {
      return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "block_table has %zu pages; %llu tokens need %llu",
                        view->block_table_len, (unsigned long long)view->tokens, (unsigned long long)pages);
    }
    flat_wide_t low = 0, high = 0;
    for (uint64_t p = 0; p < pages; ++p) {
      const flat_wide_t start = (flat_wide_t)view->block_table[p] * view->page_stride[s];
      if (p == 0 || start < low) low = start;
      if (p == 0 || start > high) high = start;
    }
    extent->low = low;
    extent->high = high;
    if (run > view->page_tokens) run = view->page_tokens;
  }
  FlatStretch(extent, run, view->token_stride[s]);
  FlatStretch(extent, view->head_end - view->head_begin, view->head_stride[s]);
  FlatStretch(extent, codec->dims[s], view->element_stride[s]);
  return 0;
}

static void FlatViewFree(flat_view_t* view) {
  free(view->bases);
  free(view->table);
}

static int64_t FlatViewCheck(flat_view_t* view, const int64_t* offsets, size_t count,
                             const flat_codec_t* codec, const flat_view_args_t* args, flat_error_t error) {
  const kvt_view_t* const v = &view->view;
  if (v->head_end < v->head_begin || v->layer_end < v->layer_begin || v->tokens > (uint64_t)1 << 48) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "view of layers %u to %u, heads %u to %u, %llu tokens",
                      v->layer_begin, v->layer_end, v->head_begin, v->head_end,
                      (unsigned long long)v->tokens);
  }
  const uint64_t wanted = (uint64_t)(v->layer_end - v->layer_begin) * codec->streams;
  if (count != wanted) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "bases are %zu; %u layers of %u streams need %llu",
                      count, v->layer_end - v->layer_begin, codec->streams, (unsigned long long)wanted);
  }
  flat_extent_t extents[2];
  for (uint32_t s = 0; s < codec->streams; ++s) {
    const int64_t checked = FlatViewExtent(v, codec, (int)s, &extents[s], error);
    if (checked < 0) return checked;
  }
  const flat_wide_t end = (flat_wide_t)args->memory_cap - (flat_wide_t)FlatElementBytes(v->element);
  for (size_t i = 0; i < count && v->tokens > 0; ++i) {
    const flat_extent_t* const extent = &extents[i % codec->streams];
    if (offsets[i] + extent->low < 0 || offsets[i] + extent->high > end) {
      return FlatRefuse(error, KVT_ERR_OUT_OF_RANGE, "base %zu at %lld leaves the memory's %zu bytes", i,
                        (long long)offsets[i], args->memory_cap);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    view->bases[i] = args->memory + (v->tokens > 0 ? offsets[i] : 0);
  }
  return 0;
}

/* Builds a view; on success the caller ends it with FlatViewFree after the last use of its memory. */
static int64_t FlatViewBuild(flat_view_t* view, const flat_codec_t* codec, const flat_view_args_t* args,
                             flat_error_t error) {
  memset(view, 0, sizeof *view);
  kvt_view_init(&view->view, sizeof view->view);
  int64_t result = FlatReadRecord("view", kViewFields, FLAT_COUNT(kViewFields), args->record,
                                  args->record_len, &view->view, error);
  if (result < 0) return result;
  const int64_t base_count = FlatArrayCount("bases", args->bases_len, sizeof(int64_t), error);
  if (base_count < 0) return base_count;
  const int64_t pages = FlatArrayCount("block_table", args->table_len, sizeof(int32_t), error);
  if (pages < 0) return pages;
  int64_t* const offsets = FlatCopy(args->bases, args->bases_len);
  view->bases = malloc(((size_t)base_count + 1) * sizeof(void*));
  view->table = FlatCopy(args->table, args->table_len);
  result = FlatNoMemory(error, args->bases_len + args->table_len);
  if (offsets != NULL && view->bases != NULL && view->table != NULL) {
    view->view.block_table = pages > 0 ? view->table : NULL;
    view->view.block_table_len = (size_t)pages;
    result = FlatViewCheck(view, offsets, (size_t)base_count, codec, args, error);
    view->view.bases = view->bases;
    view->view.base_count = (size_t)base_count;
  }
  free(offsets);
  if (result < 0) FlatViewFree(view);
  return result;
}

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
  const int64_t built = FlatViewBuild(&call->view, call->codec, view, error);
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
  result = FlatResult(status == KVT_ERR_BUFFER_TOO_SMALL ? KVT_OK : status, (int64_t)needed, FLAT_ERROR);
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
  return FlatResult(status == KVT_ERR_BUFFER_TOO_SMALL ? KVT_OK : status, (int64_t)needed, FLAT_ERROR);
}
