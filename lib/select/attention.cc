#include "select/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/options.h"
#include "common/element.h"
#include "cpu/dots.h"
#include "cpu/softmax.h"

namespace kvt {
namespace {

// With this and kRowsOfChoice, rows x heads of a group x tokens do not overflow.
constexpr uint32_t kGroupMax = 1024;
// Rows of logits that MassOf holds at a time.
constexpr uint32_t kRowsTogether = 64;
constexpr float kFloatMax = std::numeric_limits<float>::max();

float Finite(float value) {
  return value != value ? 0.0f : std::fmin(std::fmax(value, -kFloatMax), kFloatMax);
}

// In place, over the first `seen` logits; the others become 0. A row without a logit gives nothing.
void Softmax(float* row, size_t seen, size_t width, float scale) {
  const float sum = kernels::ExpRow(row, seen, scale);
  for (size_t t = 0; t < seen; ++t) row[t] = sum > 0 ? row[t] / sum : 0;
  std::fill(row + seen, row + width, 0.0f);
}

void Normalise(float* row, size_t width) {
  double sum = 0;
  for (size_t t = 0; t < width; ++t) sum += double{row[t]};
  if (!(sum > 0)) return;
  for (size_t t = 0; t < width; ++t) row[t] = static_cast<float>(double{row[t]} / sum);
}

Status Bad(absl::string_view field, const absl::AlphaNum& value, absl::string_view expected) {
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat("kvt_attention.", field, " is ", value, ", expected ", expected));
}

// The token of each row.
StatusOr<std::vector<uint32_t>> CheckRows(const View& view, const kvt_attention_t& given, uint32_t rows_max) {
  const uint64_t most = std::min<uint64_t>(rows_max, view.tokens());
  if (given.rows == 0 || given.rows > most) return Bad("rows", given.rows, absl::StrCat("1 to ", most));
  if (given.base == nullptr) return Bad("base", "NULL", "the rows");
  const std::pair<const char*, int64_t> strides[] = {{"layer_stride", given.layer_stride},
                                                     {"head_stride", given.head_stride},
                                                     {"row_stride", given.row_stride}};
  for (const auto& [name, stride] : strides) {
    if (stride % static_cast<int64_t>(sizeof(float)) != 0) return Bad(name, stride, "a multiple of 4");
  }
  std::vector<uint32_t> tokens(given.rows);
  if (given.row_tokens == nullptr) {
    std::iota(tokens.begin(), tokens.end(), static_cast<uint32_t>(view.tokens() - given.rows));
    return tokens;
  }
  std::copy(given.row_tokens, given.row_tokens + given.rows, tokens.begin());
  for (uint32_t row = 0; row < given.rows; ++row) {
    const std::string name = absl::StrCat("row_tokens[", row, "]");
    if (tokens[row] >= view.tokens()) {
      return Error(KVT_ERR_OUT_OF_RANGE, absl::StrCat("kvt_attention.", name, " is ", tokens[row],
                                                      ", the view has ", view.tokens(), " tokens"));
    }
    if (row != 0 && tokens[row] <= tokens[row - 1])
      return Bad(name, tokens[row], absl::StrCat("more than the ", tokens[row - 1], " before it"));
  }
  return tokens;
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

float LogitScale(const Model& model, float given) {
  return given > 0 ? given : 1 / std::sqrt(static_cast<float>(model.head_dim(KVT_STREAM_K)));
}

std::vector<float> Packed(const Rows& rows) {
  std::vector<float> panels(kernels::PanelFloats(rows.count(), rows.width));
  kernels::PackPanels(rows.values.data(), rows.count(), rows.width, panels.data());
  return panels;
}

Status CheckKeys(const View& view) {
  if (view.element() != KVT_ELEMENT_FP8_E4M3 && view.element() != KVT_ELEMENT_FP8_E5M2) return OkStatus();
  return Error(KVT_ERR_UNSUPPORTED,
               absl::StrCat("selection cannot compute with keys of ", ElementName(view.element())));
}

StatusOr<Attention> Attention::Check(const View& view, const kvt_attention_t* attention, uint32_t rows_max) {
  kvt_attention_t given = {};
  KVT_RETURN_IF_ERROR(ReadStruct(attention, "kvt_attention", &given, offsetof(kvt_attention_t, row_tokens)));
  if (given.kind != KVT_ATTENTION_QUERIES && given.kind != KVT_ATTENTION_ROWS)
    return Bad("kind", given.kind, "KVT_ATTENTION_QUERIES or KVT_ATTENTION_ROWS");
  if (given.layer_begin >= given.layer_end)
    return Bad("layer_end", given.layer_end, absl::StrCat("more than layer_begin ", given.layer_begin));
  if (given.layer_begin < view.layer_begin() || given.layer_end > view.layer_end()) {
    return Error(KVT_ERR_OUT_OF_RANGE,
                 absl::StrCat("kvt_attention: layers [", given.layer_begin, ", ", given.layer_end,
                              ") go beyond the view's [", view.layer_begin(), ", ", view.layer_end(), ")"));
  }
  if (view.tokens() > UINT32_MAX) {
    return Error(KVT_ERR_OUT_OF_RANGE, absl::StrCat("kvt_view.tokens is ", view.tokens(),
                                                    ", selection takes at most ", UINT32_MAX));
  }
  const uint32_t kv_heads = view.head_end() - view.head_begin();
  if (given.heads == 0 || given.heads % kv_heads != 0 || given.heads / kv_heads > kGroupMax) {
    return Bad("heads", given.heads,
               absl::StrCat("1 to ", kGroupMax, " times the view's ", kv_heads, " KV heads"));
  }
  KVT_ASSIGN_OR_RETURN(std::vector<uint32_t> row_tokens, CheckRows(view, given, rows_max));
  return Attention(given, view.head_begin(), given.heads / kv_heads, view.tokens(), std::move(row_tokens));
}

const float* Attention::Row(uint32_t layer, uint32_t query_head, uint32_t row) const {
  const int64_t at = static_cast<int64_t>(layer - given_.layer_begin) * given_.layer_stride +
                     static_cast<int64_t>(query_head) * given_.head_stride +
                     static_cast<int64_t>(row) * given_.row_stride;
  return given_.base + at / static_cast<int64_t>(sizeof(float));
}

Rows Attention::Gather(uint32_t layer, uint32_t head, const Rows& keys) const {
  Rows given;
  given.width = from_queries() ? keys.width : tokens_;
  given.values.resize(given.width * group_ * given_.rows);
  size_t at = 0;
  for (uint32_t h = 0; h < group_; ++h) {
    for (uint32_t r = 0; r < given_.rows; ++r, ++at) {
      const float* row = Row(layer, (head - head_begin_) * group_ + h, r);
      std::transform(row, row + given.width, given.row(at), Finite);
    }
  }
  if (!from_queries()) {
    for (float& value : given.values) value = std::fmax(value, 0.0f);
    return given;
  }
  const std::vector<float> packed = Packed(keys);
  Rows logits;
  logits.width = tokens_;
  logits.values.resize(given.count() * tokens_);
  kernels::DotPanels(given.values.data(), given.count(), packed.data(), tokens_, keys.width,
                     logits.values.data(), tokens_);
  return logits;
}

Rows Attention::HighestOf(uint32_t layer, uint32_t head, const Rows& keys, float scale) const {
  const Rows all = Gather(layer, head, keys);
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
      Softmax(highest.row(r), Seen(r), tokens_, scale);
    } else {
      Normalise(highest.row(r), tokens_);
    }
  }
  return highest;
}

template <typename Body>
void Attention::ForEachRow(uint32_t layer, uint32_t head, const Rows& keys, const Body& body) const {
  const std::vector<float> packed = Packed(keys);
  const size_t width = from_queries() ? keys.width : tokens_;
  std::vector<float> queries(from_queries() ? kRowsTogether * width : 0), rows(kRowsTogether * tokens_);
  for (uint32_t h = 0; h < group_; ++h) {
    const uint32_t query_head = (head - head_begin_) * group_ + h;
    for (uint32_t begin = 0; begin < given_.rows; begin += kRowsTogether) {
      const uint32_t count = std::min(kRowsTogether, given_.rows - begin);
      float* const to = from_queries() ? queries.data() : rows.data();
      for (uint32_t r = 0; r < count; ++r) {
        const float* from = Row(layer, query_head, begin + r);
        std::transform(from, from + width, to + r * width, Finite);
      }
      if (from_queries()) {
        kernels::DotPanels(queries.data(), count, packed.data(), Seen(begin + count - 1), width, rows.data(),
                           tokens_);
      }
      for (uint32_t r = 0; r < count; ++r) body(row_tokens_[begin + r], rows.data() + r * tokens_);
    }
  }
}

std::vector<float> Attention::MassOf(uint32_t layer, uint32_t head, const Rows& keys, float scale,
                                     uint32_t distance) const {
  std::vector<float> mass(tokens_);
  ForEachRow(layer, head, keys, [&](uint32_t token, float* row) {
    if (token < distance) return;
    const size_t far = size_t{token} - distance + 1;
    float factor = 1;
    if (from_queries()) {
      const float sum = kernels::ExpRow(row, size_t{token} + 1, scale);
      factor = sum > 0 ? 1 / sum : 0;
    } else {
      std::transform(row, row + far, row, [](float value) { return std::clamp(value, 0.0f, 1.0f); });
    }
    kernels::AddScaled(row, far, factor, mass.data());
  });
  return mass;
}

double Attention::SparsityOf(uint32_t layer, uint32_t head, const Rows& keys, float scale,
                             float least) const {
  double shares = 0;
  ForEachRow(layer, head, keys, [&](uint32_t token, float* row) {
    const size_t seen = size_t{token} + 1;
    float most = 1;
    if (from_queries()) {
      kernels::ExpRow(row, seen, scale);
    } else {
      most = *std::max_element(row, row + seen);
    }
    const auto few = std::count_if(row, row + seen, [&](float weight) { return weight < least * most; });
    shares += static_cast<double>(few) / static_cast<double>(seen);
  });
  return shares / (static_cast<double>(group_) * given_.rows);
}

}  // namespace kvt
