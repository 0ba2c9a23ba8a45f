#include "select/select.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "select/redundancy.h"

namespace kvt {
namespace {

constexpr uint32_t kPoolMax = 63;

}  // namespace

kvt_select_options_t DefaultSelectOptions() {
  kvt_select_options_t options = {};
  options.struct_size = sizeof options;
  options.policy = KVT_SELECT_SNAPKV;
  options.scope = KVT_SELECT_EACH_HEAD;
  options.budget = 1024;
  options.sinks = 4;
  options.window = 32;
  options.pool = 5;
  options.pooling = KVT_POOL_AVERAGE;
  options.relevance = 0.1f;
  options.similarity = 0.5f;
  return options;
}

StatusOr<Selector> Selector::Check(const kvt_select_options_t& options) {
  const auto bad = [](absl::string_view field, auto value, absl::string_view expected) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_select_options.", field, " is ", value, ", expected ", expected));
  };
  if (options.policy < KVT_SELECT_RECENT || options.policy > KVT_SELECT_RKV)
    return bad("policy", options.policy, "a KVT_SELECT_* policy");
  if (options.scope != KVT_SELECT_EACH_HEAD && options.scope != KVT_SELECT_SEQUENCE)
    return bad("scope", options.scope, "KVT_SELECT_EACH_HEAD or KVT_SELECT_SEQUENCE");
  if (options.budget == 0) return bad("budget", 0, "at least 1");
  if (uint64_t{options.sinks} + options.window > options.budget) {
    return bad(
        "window", options.window,
        absl::StrCat("no more than budget ", options.budget, " leaves beside ", options.sinks, " sinks"));
  }
  if (options.pool % 2 == 0 || options.pool > kPoolMax)
    return bad("pool", options.pool, absl::StrCat("odd, 1 to ", kPoolMax));
  if (options.pooling != KVT_POOL_AVERAGE && options.pooling != KVT_POOL_MAX)
    return bad("pooling", options.pooling, "KVT_POOL_AVERAGE or KVT_POOL_MAX");
  if (!(options.relevance >= 0 && options.relevance <= 1))
    return bad("relevance", options.relevance, "0 to 1");
  if (!(options.similarity >= -1 && options.similarity <= 1))
    return bad("similarity", options.similarity, "-1 to 1");
  if (!(options.scale >= 0 && std::isfinite(options.scale))) return bad("scale", options.scale, "0 or more");
  if (options.reserved != 0) return bad("reserved", options.reserved, "0");
  return Selector(options);
}

uint64_t Selector::Entries(const View& view, const Attention* attention) const {
  const uint64_t kept = std::min<uint64_t>(options_.budget, view.tokens());
  if (options_.scope == KVT_SELECT_SEQUENCE) return kept;
  const uint32_t layers = attention == nullptr ? view.layer_end() - view.layer_begin()
                                               : attention->layer_end() - attention->layer_begin();
  return kept * layers * (view.head_end() - view.head_begin());
}

void Selector::Pool(std::vector<float>* scores) const {
  if (options_.pool == 1) return;
  const std::vector<float> from = *scores;
  const size_t reach = options_.pool / 2;
  for (size_t t = 0; t < from.size(); ++t) {
    const size_t begin = t < reach ? 0 : t - reach, end = std::min(from.size(), t + reach + 1);
    float pooled = from[begin];
    for (size_t i = begin + 1; i < end; ++i)
      pooled = options_.pooling == KVT_POOL_MAX ? std::max(pooled, from[i]) : pooled + from[i];
    // As in SnapKV, what lies beyond the ends counts as 0 in an average.
    (*scores)[t] = options_.pooling == KVT_POOL_MAX ? pooled : pooled / static_cast<float>(options_.pool);
  }
}

std::vector<float> Selector::Scores(const Model& model, const View& view, const Attention& attention,
                                    uint32_t layer, uint32_t head) const {
  const bool rkv = options_.policy == KVT_SELECT_RKV;
  Rows keys;
  if (rkv || attention.from_queries()) keys = LoadKeys(model, view, layer, head);
  const float scale = LogitScale(model, options_.scale);
  const size_t candidates = view.tokens() - std::min<uint64_t>(options_.window, view.tokens());
  std::vector<float> scores;
  if (rkv) {
    const Rows rows = attention.HighestOf(layer, head, keys, scale);
    scores.resize(candidates);
    for (size_t r = 0; r < rows.count(); ++r) {
      for (size_t t = 0; t < candidates; ++t) scores[t] += rows.row(r)[t] / static_cast<float>(rows.count());
    }
  } else {
    scores = attention.MassOf(layer, head, keys, scale, /*distance=*/0);
    scores.resize(candidates);
  }
  Pool(&scores);
  if (!rkv) return scores;
  const std::vector<float> redundancy = Redundancy(std::move(keys), options_.similarity);
  for (size_t t = 0; t < candidates; ++t)
    scores[t] = options_.relevance * scores[t] - (1 - options_.relevance) * redundancy[t];
  return scores;
}

void Selector::Append(uint64_t tokens, const std::vector<float>& scores,
                      std::vector<uint32_t>* chosen) const {
  const uint64_t kept = std::min<uint64_t>(options_.budget, tokens);
  const uint64_t window = std::min<uint64_t>(options_.window, kept);
  const uint64_t sinks = std::min<uint64_t>(options_.sinks, kept - window);
  const size_t first = chosen->size();
  std::vector<uint32_t> between(tokens - window - sinks);
  std::iota(between.begin(), between.end(), static_cast<uint32_t>(sinks));
  const auto wanted = between.begin() + static_cast<ptrdiff_t>(kept - window - sinks);
  if (options_.policy == KVT_SELECT_RECENT) {
    std::rotate(between.begin(), between.end() - (wanted - between.begin()), between.end());
  } else {
    std::partial_sort(between.begin(), wanted, between.end(), [&](uint32_t a, uint32_t b) {
      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
  }
  for (uint64_t t = 0; t < sinks; ++t) chosen->push_back(static_cast<uint32_t>(t));
  chosen->insert(chosen->end(), between.begin(), wanted);
  for (uint64_t t = tokens - window; t < tokens; ++t) chosen->push_back(static_cast<uint32_t>(t));
  std::sort(chosen->begin() + static_cast<ptrdiff_t>(first), chosen->end());
}

Status Selector::CheckInput(const View& view, const Attention* attention) const {
  const bool recent = options_.policy == KVT_SELECT_RECENT;
  if (!recent && attention == nullptr) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("attention is NULL, which policy ", options_.policy, " needs"));
  }
  if (view.tokens() > UINT32_MAX) {
    return Error(KVT_ERR_OUT_OF_RANGE, absl::StrCat("kvt_view.tokens is ", view.tokens(),
                                                    ", selection takes at most ", UINT32_MAX));
  }
  const bool reads_keys = !recent && (attention->from_queries() || options_.policy == KVT_SELECT_RKV);
  return reads_keys ? CheckKeys(view) : OkStatus();
}

std::vector<uint32_t> Selector::Choose(const Model& model, const View& view,
                                       const Attention* attention) const {
  const bool recent = options_.policy == KVT_SELECT_RECENT;
  std::vector<uint32_t> chosen;
  chosen.reserve(Entries(view, attention));
  const bool each = options_.scope == KVT_SELECT_EACH_HEAD;
  const uint32_t layer_begin = attention == nullptr ? view.layer_begin() : attention->layer_begin();
  const uint32_t layer_end = attention == nullptr ? view.layer_end() : attention->layer_end();
  std::vector<float> total;
  for (uint32_t layer = layer_begin; layer < layer_end; ++layer) {
    for (uint32_t head = view.head_begin(); head < view.head_end(); ++head) {
      std::vector<float> scores;
      if (!recent) scores = Scores(model, view, *attention, layer, head);
      if (each) {
        Append(view.tokens(), scores, &chosen);
        continue;
      }
      total.resize(scores.size());
      for (size_t t = 0; t < scores.size(); ++t) total[t] += scores[t];
    }
  }
  if (!each) Append(view.tokens(), total, &chosen);
  return chosen;
}

}  // namespace kvt
