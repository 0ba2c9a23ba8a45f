#include "model/view.h"

#include "base/options.h"

namespace kvt {
namespace {

using Wide = __int128;

Status Bad(absl::string_view field, const absl::AlphaNum& value, absl::string_view wanted) {
  return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("kvt_view.", field, " is ", value, ", ", wanted));
}

Status CheckMemory(const kvt_view_t& v) {
  if (v.memory == KVT_MEMORY_CUDA) {
    return Error(KVT_ERR_UNAVAILABLE,
                 absl::StrCat("kvt_view.memory is 3 (CUDA), device ", v.device,
                              ", and libkvartet_cuda.so is not loaded; install the package libkvartet-cuda"));
  }
  if (v.memory != KVT_MEMORY_HOST && v.memory != KVT_MEMORY_PINNED)
    return Bad("memory", v.memory, "allowed are 1 (host), 2 (pinned) and 3 (CUDA)");
  if (v.device != 0) return Bad("device", v.device, "in host memory it is 0");
  if (v.order_stream != nullptr) return Bad("order_stream", "set", "in host memory it is NULL");
  if (v.reserved != 0) return Bad("reserved", v.reserved, "it is 0");
  if (ElementBytes(v.element) == 0)
    return Bad("element", v.element, "allowed are 1 (f32), 2 (f16), 3 (bf16), 4 (fp8_e4m3) and 5 (fp8_e5m2)");
  return OkStatus();
}

// [begin, end) must not be empty (a mistake) and must lie within the model's `count` (another model).
Status CheckPart(absl::string_view name, uint32_t begin, uint32_t end, uint32_t count) {
  const std::string range = absl::StrCat("[", begin, ", ", end, ")");
  if (begin >= end) return Bad(absl::StrCat(name, "s"), range, "the range is empty");
  if (end > count) {
    return Error(KVT_ERR_MISMATCH,
                 absl::StrCat("kvt_view.", name, "_end is ", end, ", the model has ", count, " ", name, "s"));
  }
  return OkStatus();
}

Status CheckBases(const kvt_view_t& v, uint32_t streams) {
  const size_t wanted = static_cast<size_t>(v.layer_end - v.layer_begin) * streams;
  if (v.base_count != wanted)
    return Bad("base_count", v.base_count, absl::StrCat("layers x streams are ", wanted));
  if (v.bases == nullptr) return Bad("bases", "NULL", absl::StrCat("base_count is ", v.base_count));
  for (size_t i = 0; i < v.base_count; ++i) {
    if (v.bases[i] == nullptr)
      return Bad(absl::StrCat("bases[", i, "]"), "NULL", "every layer and stream has a base");
  }
  return OkStatus();
}

// Pages that `tokens` fill.
uint64_t PagesOf(const kvt_view_t& v) {
  return v.tokens / v.page_tokens + (v.tokens % v.page_tokens != 0 ? 1 : 0);
}

Status CheckTable(const kvt_view_t& v) {
  if (v.block_table == nullptr) {
    if (v.block_table_len != 0)
      return Bad("block_table", "NULL", absl::StrCat("block_table_len is ", v.block_table_len));
    return OkStatus();
  }
  if (v.page_tokens == 0) return Bad("page_tokens", v.page_tokens, "with a block table it is at least 1");
  if (v.block_table_len < PagesOf(v)) {
    return Bad("block_table_len", v.block_table_len,
               absl::StrCat(v.tokens, " tokens in pages of ", v.page_tokens, " need ", PagesOf(v)));
  }
  for (uint64_t i = 0; i < PagesOf(v); ++i) {
    if (v.block_table[i] < 0)
      return Bad(absl::StrCat("block_table[", i, "]"), v.block_table[i],
                 "a page that tokens lie in has no negative id");
  }
  return OkStatus();
}

// Lowest and highest byte offset from a base so far.
struct Extent {
  Wide low = 0, high = 0;
};

// Widens the extent by `count` steps of `stride`, the last of which is number `last`.
Status Step(absl::string_view name, uint32_t stream, int64_t stride, uint64_t last, uint64_t count,
            size_t element_bytes, Extent* extent) {
  const std::string field = absl::StrCat(name, "_stride[", stream, "]");
  if (count > 1 && Wide{stride} < Wide{static_cast<int64_t>(element_bytes)} &&
      Wide{stride} > -Wide{static_cast<int64_t>(element_bytes)}) {
    return Bad(field, stride, absl::StrCat("elements of ", element_bytes, " bytes would overlap"));
  }
  const Wide reach = Wide{stride} * Wide{last};
  constexpr Wide kMost = Wide{1} << 62;
  if (reach > kMost || reach < -kMost)
    return Bad(field, stride, absl::StrCat("with ", last, " steps it leaves the address space"));
  (reach < 0 ? extent->low : extent->high) += reach;
  return OkStatus();
}

Status CheckStream(const Model& model, const kvt_view_t& v, uint32_t streams, uint32_t stream) {
  if (v.tokens == 0) return OkStatus();
  const size_t bytes = ElementBytes(v.element);
  Extent extent;
  const auto step = [&](absl::string_view name, int64_t stride, uint64_t last, uint64_t count) {
    return Step(name, stream, stride, last, count, bytes, &extent);
  };
  const uint64_t elements = model.head_dim(stream), heads = v.head_end - v.head_begin;
  KVT_RETURN_IF_ERROR(step("element", v.element_stride[stream], elements - 1, elements));
  KVT_RETURN_IF_ERROR(step("head", v.head_stride[stream], heads - 1, heads));
  if (v.block_table == nullptr) {
    KVT_RETURN_IF_ERROR(step("token", v.token_stride[stream], v.tokens - 1, v.tokens));
  } else {
    const uint64_t run = std::min<uint64_t>(v.tokens, v.page_tokens), pages = PagesOf(v);
    const int32_t last_page = *std::max_element(v.block_table, v.block_table + pages);
    KVT_RETURN_IF_ERROR(step("token", v.token_stride[stream], run - 1, run));
    KVT_RETURN_IF_ERROR(step("page", v.page_stride[stream], static_cast<uint64_t>(last_page), pages));
  }
  for (size_t i = stream; i < v.base_count; i += streams) {
    const Wide base = reinterpret_cast<uintptr_t>(v.bases[i]);
    if (base + extent.low < 0 || base + extent.high + static_cast<Wide>(bytes) > Wide{UINTPTR_MAX}) {
      return Bad(absl::StrCat("bases[", i, "]"), absl::Hex(reinterpret_cast<uintptr_t>(v.bases[i])),
                 absl::StrCat("with the strides of stream ", stream, " and ", v.tokens,
                              " tokens its rows leave the address space"));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<View> View::Check(const Model& model, const kvt_view_t* view) {
  kvt_view_t v = {};
  KVT_RETURN_IF_ERROR(ReadStruct(view, "kvt_view", &v));
  KVT_RETURN_IF_ERROR(CheckMemory(v));
  KVT_RETURN_IF_ERROR(CheckPart("layer", v.layer_begin, v.layer_end, model.layers()));
  KVT_RETURN_IF_ERROR(CheckPart("head", v.head_begin, v.head_end, model.kv_heads()));
  KVT_RETURN_IF_ERROR(CheckBases(v, model.streams()));
  KVT_RETURN_IF_ERROR(CheckTable(v));
  if (v.first_position > UINT64_MAX - v.tokens)
    return Bad("first_position", v.first_position, absl::StrCat("with ", v.tokens, " tokens it overflows"));
  for (uint32_t stream = 0; stream < model.streams(); ++stream)
    KVT_RETURN_IF_ERROR(CheckStream(model, v, model.streams(), stream));

  View checked;
  checked.streams_ = model.streams();
  checked.element_ = v.element;
  checked.layer_begin_ = v.layer_begin;
  checked.layer_end_ = v.layer_end;
  checked.head_begin_ = v.head_begin;
  checked.head_end_ = v.head_end;
  checked.bases_.reserve(v.base_count);
  for (size_t i = 0; i < v.base_count; ++i) checked.bases_.push_back(static_cast<uint8_t*>(v.bases[i]));
  for (uint32_t stream = 0; stream < checked.streams_; ++stream) {
    checked.token_stride_[stream] = v.token_stride[stream];
    checked.head_stride_[stream] = v.head_stride[stream];
    checked.element_stride_[stream] = v.element_stride[stream];
    checked.page_stride_[stream] = v.page_stride[stream];
  }
  if (v.block_table != nullptr) {
    checked.table_.assign(v.block_table, v.block_table + PagesOf(v));
    checked.page_tokens_ = v.page_tokens;
  }
  checked.tokens_ = v.tokens;
  checked.first_position_ = v.first_position;
  return checked;
}

}  // namespace kvt
