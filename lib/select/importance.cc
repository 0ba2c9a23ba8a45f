#include "select/importance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvt {

kvt_importance_options_t DefaultImportanceOptions() {
  kvt_importance_options_t options = {};
  options.struct_size = sizeof options;
  options.distance = 64;
  options.sinks = 4;
  options.shrinkage = 32;
  options.floor = 0.05f;
  options.centre = -0.457f;
  return options;
}

StatusOr<Importance> Importance::Check(const kvt_importance_options_t& options) {
  const auto bad = [](absl::string_view field, auto value, absl::string_view expected) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_importance_options.", field, " is ", value, ", expected ", expected));
  };
  if (!(options.shrinkage >= 0 && std::isfinite(options.shrinkage)))
    return bad("shrinkage", options.shrinkage, "0 or more");
  if (!(options.floor >= 0 && options.floor <= 1)) return bad("floor", options.floor, "0 to 1");
  if (!(options.centre >= -16 && options.centre <= 16)) return bad("centre", options.centre, "-16 to 16");
  if (!(options.scale >= 0 && std::isfinite(options.scale))) return bad("scale", options.scale, "0 or more");
  if (options.reserved != 0) return bad("reserved", options.reserved, "0");
  return Importance(options);
}

std::vector<double> Importance::Weights(const Model& model, const View& view,
                                        const Attention& attention) const {
  const size_t tokens = view.tokens();
  const std::vector<uint32_t>& queries = attention.row_tokens();
  // Queries far enough from each token.
  std::vector<double> counts(tokens);
  for (size_t t = 0; t < tokens; ++t) {
    const auto first = std::lower_bound(queries.begin(), queries.end(), t + options_.distance);
    counts[t] = static_cast<double>(queries.end() - first);
  }
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (all == 0) return {};
  // The shrinkage is in queries of every token; where only some were sampled, each stands for several.
  const size_t steps = queries.size() - 1;
  const double gap =
      steps == 0 ? 1 : static_cast<double>(queries.back() - queries.front()) / static_cast<double>(steps);
  const double shrinkage = double{options_.shrinkage} / gap;
  const size_t sinks = std::min<size_t>(options_.sinks, tokens - 1);
  const float scale = LogitScale(model, options_.scale);
  std::vector<double> weights(tokens), rates(tokens);
  for (uint32_t layer = attention.layer_begin(); layer < attention.layer_end(); ++layer) {
    for (uint32_t head = view.head_begin(); head < view.head_end(); ++head) {
      Rows keys;
      if (attention.from_queries()) keys = LoadKeys(model, view, layer, head);
      const std::vector<float> mass = attention.MassOf(layer, head, keys, scale, options_.distance);
      const double mean_rate = std::accumulate(mass.begin(), mass.end(), 0.0) / all;
      double sum = 0;
      for (size_t t = 0; t < tokens; ++t) {
        const double queries_here = counts[t] + shrinkage;
        rates[t] = queries_here > 0 ? (double{mass[t]} + shrinkage * mean_rate) / queries_here : mean_rate;
        if (t >= sinks) sum += rates[t];
      }
      const double mean = sum / static_cast<double>(tokens - sinks);
      for (size_t t = 0; t < tokens; ++t)
        weights[t] += (mean > 0 ? rates[t] / mean : 1) + double{options_.floor};
    }
  }
  const double parts = static_cast<double>(attention.layer_end() - attention.layer_begin()) *
                       static_cast<double>(view.head_end() - view.head_begin());
  for (double& weight : weights) weight /= parts;
  return weights;
}

std::vector<int8_t> Importance::Exponents(const Model& model, const View& view,
                                          const Attention& attention) const {
  const std::vector<double> weights = Weights(model, view, attention);
  std::vector<int8_t> exponents(view.tokens());
  for (size_t t = 0; t < weights.size(); ++t) {
    const double exponent = -2 * (std::log2(weights[t]) - double{options_.centre});
    exponents[t] =
        static_cast<int8_t>(std::lrint(std::clamp<double>(exponent, KVT_IMPORTANCE_MIN, KVT_IMPORTANCE_MAX)));
  }
  return exponents;
}

}  // namespace kvt
