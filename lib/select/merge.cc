#include "select/merge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/random.h"
#include "common/element.h"

namespace kvt {
namespace {

constexpr uint32_t kSpanMax = 1024;

// The largest finite value of an element type.
double Most(kernels::Element element) {
  return element == kernels::Element::kF16    ? 65504
         : element == kernels::Element::kBf16 ? 0x1.fep127
                                              : 0x1.fffffep127;
}

// 0 to 1, the same for the same four numbers.
double Uniform(uint64_t seed, uint64_t layer, uint64_t head, uint64_t token) {
  uint64_t x = seed;
  for (const uint64_t part : {layer, head, token}) {
    x = Mix64(x + kSplitMixStep + part);
  }
  return static_cast<double>(x >> 11) * 0x1p-53;
}

Status CheckChoice(absl::Span<const uint32_t> tokens, size_t begin, size_t count, uint64_t held) {
  for (size_t i = begin; i < begin + count; ++i) {
    if (tokens[i] >= held || (i != begin && tokens[i] <= tokens[i - 1])) {
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("tokens[", i, "] is ", tokens[i],
                                ", expected choices of ascending tokens of the view's ", held));
    }
  }
  return OkStatus();
}

}  // namespace

kvt_merge_options_t DefaultMergeOptions() {
  kvt_merge_options_t options = {};
  options.struct_size = sizeof options;
  options.scope = KVT_SELECT_EACH_HEAD;
  options.window = 32;
  options.span = 32;
  return options;
}

StatusOr<Merger> Merger::Check(const kvt_merge_options_t& options) {
  const auto bad = [](absl::string_view field, auto value, absl::string_view expected) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_merge_options.", field, " is ", value, ", expected ", expected));
  };
  if (options.scope != KVT_SELECT_EACH_HEAD && options.scope != KVT_SELECT_SEQUENCE)
    return bad("scope", options.scope, "KVT_SELECT_EACH_HEAD or KVT_SELECT_SEQUENCE");
  if (options.window == 0) return bad("window", 0, "at least 1");
  if (options.span == 0 || options.span > kSpanMax)
    return bad("span", options.span, absl::StrCat("1 to ", kSpanMax));
  if (!(options.scale >= 0 && std::isfinite(options.scale))) return bad("scale", options.scale, "0 or more");
  if (options.reserved != 0) return bad("reserved", options.reserved, "0");
  return Merger(options);
}

StatusOr<std::vector<kvt_merge_t>> Merger::Plan(const Model& model, const View& view,
                                                const Attention& attention,
                                                absl::Span<const uint32_t> tokens) const {
  const uint32_t heads = view.head_end() - view.head_begin();
  const bool each = options_.scope == KVT_SELECT_EACH_HEAD;
  const size_t choices = each ? size_t{attention.layer_end() - attention.layer_begin()} * heads : 1;
  if (tokens.empty() || tokens.size() % choices != 0 || tokens.size() > UINT32_MAX) {
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("token_count is ", tokens.size(), ", expected ",
                                                        choices, " choices of equally many tokens"));
  }
  const size_t kept = tokens.size() / choices;
  for (size_t choice = 0; choice < choices; ++choice)
    KVT_RETURN_IF_ERROR(CheckChoice(tokens, choice * kept, kept, view.tokens()));
  const size_t window = std::min<size_t>(options_.window, view.tokens());
  const float scale = LogitScale(model, options_.scale);
  std::vector<kvt_merge_t> merges;
  for (uint32_t layer = attention.layer_begin(); layer < attention.layer_end(); ++layer) {
    for (uint32_t head = view.head_begin(); head < view.head_end(); ++head) {
      const size_t choice = size_t{layer - attention.layer_begin()} * heads + head - view.head_begin();
      const size_t begin = each ? choice * kept : 0, end = begin + kept;
      const Rows keys = attention.from_queries() ? LoadKeys(model, view, layer, head) : Rows();
      const std::vector<float> mass = attention.MassOf(layer, head, keys, scale, /*distance=*/0);
      const double recent = std::accumulate(mass.end() - static_cast<ptrdiff_t>(window), mass.end(), 0.0) /
                            static_cast<double>(window);
      size_t next = begin;
      for (uint32_t token = 0; token < view.tokens() && next < end; ++token) {
        if (tokens[next] == token) {
          ++next;
          continue;
        }
        if (!(double{mass[token]} > Uniform(options_.seed, layer, head, token) * recent)) continue;
        kvt_merge_t merge = {};
        merge.layer = layer;
        merge.head = head;
        merge.from = token;
        merge.to = static_cast<uint32_t>(next);
        merge.count = static_cast<uint32_t>(std::min<size_t>(options_.span, end - next));
        merge.weight = 1 / static_cast<float>(options_.span);
        merges.push_back(merge);
      }
    }
  }
  return merges;
}

Status ApplyMerges(const Model& model, const View& view, absl::Span<const uint32_t> tokens,
                   absl::Span<const kvt_merge_t> merges) {
  if (model.streams() != 2)
    return Error(KVT_ERR_UNSUPPORTED, "merging needs a V stream, which a model with a latent has not");
  KVT_RETURN_IF_ERROR(CheckKeys(view));
  const auto beyond = [](size_t i, absl::string_view field, uint64_t value, absl::string_view of) {
    return Error(KVT_ERR_OUT_OF_RANGE,
                 absl::StrCat("merges[", i, "].", field, " is ", value, ", beyond ", of));
  };
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const kvt_merge_t*>> by_head;
  for (size_t i = 0; i < merges.size(); ++i) {
    const kvt_merge_t& merge = merges[i];
    if (merge.layer < view.layer_begin() || merge.layer >= view.layer_end())
      return beyond(i, "layer", merge.layer, "the view's");
    if (merge.head < view.head_begin() || merge.head >= view.head_end())
      return beyond(i, "head", merge.head, "the view's");
    if (merge.from >= view.tokens()) return beyond(i, "from", merge.from, "the view's tokens");
    if (merge.to > tokens.size() || merge.count > tokens.size() - merge.to)
      return beyond(i, "count", merge.count, absl::StrCat("the ", tokens.size(), " tokens"));
    if (!std::isfinite(merge.weight)) {
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("merges[", i, "].weight is ", merge.weight, ", expected a finite one"));
    }
    by_head[{merge.layer, merge.head}].push_back(&merge);
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= view.tokens()) {
      return Error(KVT_ERR_OUT_OF_RANGE,
                   absl::StrCat("tokens[", i, "] is ", tokens[i], ", the view has ", view.tokens()));
    }
  }
  const auto element = static_cast<kernels::Element>(view.element());
  const double most = Most(element);
  const uint32_t dim = model.head_dim(KVT_STREAM_V);
  const int64_t step = view.element_stride(KVT_STREAM_V);
  for (const auto& [place, list] : by_head) {
    const uint32_t layer = place.first;
    const int64_t at =
        static_cast<int64_t>(place.second - view.head_begin()) * view.head_stride(KVT_STREAM_V);
    const auto value = [&](uint32_t token, uint32_t e) {
      return view.Token(layer, KVT_STREAM_V, token) + at + static_cast<int64_t>(e) * step;
    };
    std::map<uint32_t, std::vector<double>> added;
    for (const kvt_merge_t* merge : list) {
      std::vector<double> row(dim);
      for (uint32_t e = 0; e < dim; ++e) {
        row[e] = double{merge->weight} * double{kernels::LoadElement(element, value(merge->from, e), 0)};
        if (!std::isfinite(row[e])) row[e] = 0;
      }
      for (const uint32_t token : tokens.subspan(merge->to, merge->count)) {
        std::vector<double>& sum = added.try_emplace(token, dim).first->second;
        std::transform(sum.begin(), sum.end(), row.begin(), sum.begin(), std::plus<>());
      }
    }
    for (const auto& [token, sum] : added) {
      for (uint32_t e = 0; e < dim; ++e) {
        uint8_t* const to = value(token, e);
        const double whole = double{kernels::LoadElement(element, to, 0)} + sum[e];
        kernels::StoreElement(element, static_cast<float>(std::clamp(whole, -most, most)), to, 0);
      }
    }
  }
  return OkStatus();
}

}  // namespace kvt
