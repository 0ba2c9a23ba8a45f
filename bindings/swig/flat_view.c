/* Views over one piece of memory. A view is checked here, element by element of its extremes, so that the
 * library never leaves the memory that a host passed. */
#include "flat_internal.h"

/* Of a model. */
typedef struct flat_rows {
  uint32_t streams;
  uint32_t dims[2]; /* elements of a row, per stream */
} flat_rows_t;

/* Reads streams and row sizes from the model's canonical bytes (docs/keys.md). */
static int64_t FlatModelRows(int64_t model, flat_rows_t* rows, flat_error_t error) {
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
  rows->streams = layout == KVT_LAYOUT_MLA ? 1 : 2;
  rows->dims[0] = words[2];
  rows->dims[1] = words[3];
  return 0;
}

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
static int64_t FlatViewExtent(const kvt_view_t* view, const flat_rows_t* rows, int s, flat_extent_t* extent,
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
  FlatStretch(extent, rows->dims[s], view->element_stride[s]);
  return 0;
}

static void FlatViewFree(flat_view_t* view) {
  free(view->bases);
  free(view->table);
}

static int64_t FlatViewCheck(flat_view_t* view, const int64_t* offsets, size_t count, const flat_rows_t* rows,
                             const flat_view_args_t* args, flat_error_t error) {
  const kvt_view_t* const v = &view->view;
  if (v->head_end < v->head_begin || v->layer_end < v->layer_begin || v->tokens > (uint64_t)1 << 48) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "view of layers %u to %u, heads %u to %u, %llu tokens",
                      v->layer_begin, v->layer_end, v->head_begin, v->head_end,
                      (unsigned long long)v->tokens);
  }
  const uint64_t wanted = (uint64_t)(v->layer_end - v->layer_begin) * rows->streams;
  if (count != wanted) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "bases are %zu; %u layers of %u streams need %llu",
                      count, v->layer_end - v->layer_begin, rows->streams, (unsigned long long)wanted);
  }
  flat_extent_t extents[2];
  for (uint32_t s = 0; s < rows->streams; ++s) {
    const int64_t checked = FlatViewExtent(v, rows, (int)s, &extents[s], error);
    if (checked < 0) return checked;
  }
  const flat_wide_t end = (flat_wide_t)args->memory_cap - (flat_wide_t)FlatElementBytes(v->element);
  for (size_t i = 0; i < count && v->tokens > 0; ++i) {
    const flat_extent_t* const extent = &extents[i % rows->streams];
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
static int64_t FlatViewBuild(flat_view_t* view, const flat_rows_t* rows, const flat_view_args_t* args,
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
    result = FlatViewCheck(view, offsets, (size_t)base_count, rows, args, error);
    view->view.bases = view->bases;
    view->view.base_count = (size_t)base_count;
  }
  free(offsets);
  if (result < 0) FlatViewFree(view);
  return result;
}

static const flat_field_t kShardFields[] = {
    FLAT_FIELD(kvt_shard_t, layer_begin, FLAT_U32),  FLAT_FIELD(kvt_shard_t, layer_end, FLAT_U32),
    FLAT_FIELD(kvt_shard_t, head_begin, FLAT_U32),   FLAT_FIELD(kvt_shard_t, head_end, FLAT_U32),
    FLAT_FIELD(kvt_shard_t, block_tokens, FLAT_U32),
};

int64_t kvtf_model_shard(int64_t model, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  kvt_shard_t shard;
  const kvt_status_t status = kvt_shard_init((uint64_t)model, &shard, sizeof shard);
  if (status != KVT_OK) return FlatResult(status, 0, FLAT_ERROR);
  return FlatRecordOut(kShardFields, FLAT_COUNT(kShardFields), &shard, buf, cap);
}

int64_t kvtf_model_rope(int64_t model, const uint8_t* view, size_t view_len, const uint8_t* bases,
                        size_t bases_len, const uint8_t* table, size_t table_len, uint8_t* memory,
                        size_t memory_cap, int64_t token_begin, int64_t token_count, int64_t undo,
                        uint8_t* err, size_t err_cap) {
  if (token_begin < 0 || token_count < 0 || undo < 0 || undo > UINT8_MAX) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT,
                      "token_begin is %lld, token_count %lld and undo %lld; none is negative, undo is 0 or 1",
                      (long long)token_begin, (long long)token_count, (long long)undo);
  }
  flat_rows_t rows;
  flat_view_t built;
  const flat_view_args_t args = FLAT_VIEW_ARGS(memory, memory_cap);
  int64_t result = FlatModelRows(model, &rows, FLAT_ERROR);
  if (result == 0) result = FlatViewBuild(&built, &rows, &args, FLAT_ERROR);
  if (result < 0) return result;
  result = FlatResult(kvt_model_rope((uint64_t)model, &built.view, (uint64_t)token_begin,
                                     (uint64_t)token_count, (uint8_t)undo),
                      0, FLAT_ERROR);
  FlatViewFree(&built);
  return result;
}
