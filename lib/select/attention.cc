#include "select/attention.h"

#include <cmath>
#include <limits>

#include "base/options.h"
#include "common/element.h"
#include "cpu/dots.h"

namespace kvt {
namespace {

// With these, rows x heads of a group x tokens do not overflow.
constexpr uint32_t kRowsMax = 256, kGroupMax = 1024;
constexpr float kFloatMax = std::numeric_limits<float>::max();

float Finite(float value) {
  return value != value ? 0.0f : std::fmin(std::fmax(value, -kFloatMax), kFloatMax);
}

// In place, over the first `seen` values; the others become 0. A row without a finite logit gives nothing.
void Softmax(float* row, size_t seen, size_t width) {
  float highest = -kFloatMax;
  for (size_t t = 0; t < seen; ++t) highest = std::fmax(highest, row[t]);
  double sum = 0;
  for (size_t t = 0; t < seen; ++t) {
    const float value = std::exp(row[t] - highest);
    row[t] = value == value ? value : 0;
    sum += double{row[t]};
  }
  for (size_t t = 0; t < width; ++t)
    row[t] = t < seen && sum > 0 ? static_cast<float>(double{row[t]} / sum) : 0;
}

void Normalise(float* row, size_t width) {
  double sum = 0;
  for (size_t t = 0; t < width; ++t) sum += double{row[t]};
  if (!(sum > 0)) return;
  for (size_t t = 0; t < width; ++t) row[t] = static_cast<float>(double{row[t]} / sum);
}

}  // namespace

Rows LoadKeys(const Model& model, const View& view, uint32_t layer, uint32_t head) {
  Rows keys;
  keys.width = model.head_dim(KVT_STREAM_K);
  keys.values.resize(keys.width * view.tokens());
  const auto element = static_cast<kernels::Element>(view.element());
  const auto at = static_cast<int64_t>(head - view.head_begin()) * view.head_stride(KVT_STREAM_K);
  for (uint64_t t = 0; t < view.tokens(); ++t) {
    const uint8_t* from = view.Token(layer, KVT_STREAM_K, t) + at;
    float* to = keys.row(t);
    for (size_t e = 0; e < keys.width; ++e, from += view.element_stride(KVT_STREAM_K))
      to[e] = Finite(kernels::LoadElement(element, from, 0));
  }
  return keys;
}

StatusOr<Attention> Attention::Check(const View& view, const kvt_attention_t* attention) {
  kvt_attention_t given = {};
  KVT_RETURN_IF_ERROR(ReadStruct(attention, "kvt_attention", &given));
  const auto bad = [](absl::string_view field, auto value, absl::string_view expected) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_attention.", field, " is ", value, ", expected ", expected));
  };
  if (given.kind != KVT_ATTENTION_QUERIES && given.kind != KVT_ATTENTION_ROWS)
    return bad("kind", given.kind, "KVT_ATTENTION_QUERIES or KVT_ATTENTION_ROWS");
  if (given.layer_begin >= given.layer_end)
    return bad("layer_end", given.layer_end, absl::StrCat("more than layer_begin ", given.layer_begin));
  if (given.layer_begin < view.layer_begin() || given.layer_end > view.layer_end()) {
    return Error(KVT_ERR_OUT_OF_RANGE,
                 absl::StrCat("kvt_attention: layers [", given.layer_begin, ", ", given.layer_end,
                              ") go beyond the view's [", view.layer_begin(), ", ", view.layer_end(), ")"));
  }
  const uint32_t kv_heads = view.head_end() - view.head_begin();
  if (given.heads == 0 || given.heads % kv_heads != 0 || given.heads / kv_heads > kGroupMax) {
    return bad("heads", given.heads,
               absl::StrCat("1 to ", kGroupMax, " times the view's ", kv_heads, " KV heads"));
  }
  const uint64_t most = std::min<uint64_t>(kRowsMax, view.tokens());
  if (given.rows == 0 || given.rows > most) return bad("rows", given.rows, absl::StrCat("1 to ", most));
  if (given.base == nullptr) return bad("base", "NULL", "the rows");
  const std::pair<const char*, int64_t> strides[] = {{"layer_stride", given.layer_stride},
                                                     {"head_stride", given.head_stride},
                                                     {"row_stride", given.row_stride}};
  for (const auto& [name, stride] : strides) {
    if (stride % static_cast<int64_t>(sizeof(float)) != 0) return bad(name, stride, "a multiple of 4");
  }
  return Attention(given, view.head_begin(), given.heads / kv_heads, view.tokens());
}

const float* Attention::Row(uint32_t layer, uint32_t query_head, uint32_t row) const {
  const int64_t at = static_cast<int64_t>(layer - given_.layer_begin) * given_.layer_stride +
                     static_cast<int64_t>(query_head) * given_.head_stride +
                     static_cast<int64_t>(row) * given_.row_stride;
  return given_.base + at / static_cast<int64_t>(sizeof(float));
}

Rows Attention::Gather(uint32_t layer, uint32_t head, const Rows& keys, float scale) const {
  Rows given;
  given.width = from_queries() ? keys.width : tokens_;
  given.values.resize(given.width * group_ * given_.rows);
  size_t at = 0;
  for (uint32_t h = 0; h < group_; ++h) {
    for (uint32_t r = 0; r < given_.rows; ++r, ++at) {
      const float* row = Row(layer, (head - head_begin_) * group_ + h, r);
      for (size_t c = 0; c < given.width; ++c) given.row(at)[c] = Finite(row[c]);
    }
  }
  if (!from_queries()) {
    for (float& value : given.values) value = std::fmax(value, 0.0f);
    return given;
  }
  Rows logits;
  logits.width = tokens_;
  logits.values.resize(given.count() * tokens_);
  kernels::DotRows(given.values.data(), given.count(), keys.values.data(), tokens_, keys.width,
                   logits.values.data(), tokens_);
  for (float& value : logits.values) value = value != value ? -kFloatMax : value * scale;
  return logits;
}

Rows Attention::Of(uint32_t layer, uint32_t head, const Rows& keys, float scale) const {
  Rows rows = Gather(layer, head, keys, scale);
  if (!from_queries()) return rows;
  for (size_t i = 0; i < rows.count(); ++i)
    Softmax(rows.row(i), Seen(static_cast<uint32_t>(i % given_.rows)), rows.width);
  return rows;
}

Rows Attention::HighestOf(uint32_t layer, uint32_t head, const Rows& keys, float scale) const {
  const Rows all = Gather(layer, head, keys, scale);
  Rows highest;
  highest.width = tokens_;
  highest.values.assign(all.values.begin(),
                        all.values.begin() + static_cast<ptrdiff_t>(tokens_ * given_.rows));
  for (uint32_t h = 1; h < group_; ++h) {
    for (uint32_t r = 0; r < given_.rows; ++r) {
      const float* other = all.row(size_t{h} * given_.rows + r);
      for (size_t t = 0; t < tokens_; ++t) highest.row(r)[t] = std::fmax(highest.row(r)[t], other[t]);
    }
  }
  for (uint32_t r = 0; r < given_.rows; ++r) {
    if (from_queries()) {
      Softmax(highest.row(r), Seen(r), tokens_);
    } else {
      Normalise(highest.row(r), tokens_);
    }
  }
  return highest;
}

}  // namespace kvt
