#include "select/thought.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "select/cluster.h"

namespace kvt {
namespace {

// Tokens that stay of each kThoughtTokens, after each time a thought was thinned.
constexpr uint32_t kSchedule[] = {64, 32, 16, 8, 4};
constexpr uint32_t kLevels = std::size(kSchedule);
constexpr uint32_t kThoughtTokens = 128;

uint64_t KeptAt(const kvt_thought_t& thought, uint32_t level) {
  if (level == 0) return thought.held;
  const uint64_t kept =
      (uint64_t{thought.length} * kSchedule[level - 1] + kThoughtTokens - 1) / kThoughtTokens;
  return std::min<uint64_t>(kept, thought.held);
}

size_t Parts(const View& view) {
  return size_t{view.layer_end() - view.layer_begin()} * (view.head_end() - view.head_begin());
}

// The lower, the less a thought matters to those after it.
int Rank(uint32_t kind) { return kind == KVT_THOUGHT_TRANSITION ? 0 : kind == KVT_THOUGHT_EXECUTION ? 1 : 2; }

Status CheckThoughts(absl::Span<const kvt_thought_t> thoughts) {
  for (size_t i = 0; i < thoughts.size(); ++i) {
    const kvt_thought_t& thought = thoughts[i];
    const auto bad = [&](absl::string_view field, uint64_t value, const absl::AlphaNum& expected) {
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("thoughts[", i, "].", field, " is ", value, ", expected ", expected));
    };
    if (thought.kind < KVT_THOUGHT_REASONING || thought.kind > KVT_THOUGHT_TRANSITION)
      return bad("kind", thought.kind, "a KVT_THOUGHT_*");
    if (thought.length == 0) return bad("length", 0, "at least 1");
    if (thought.held == 0 || thought.held > thought.length)
      return bad("held", thought.held, absl::StrCat("1 to its length ", thought.length));
    if (thought.level > kLevels) return bad("level", thought.level, absl::StrCat("0 to ", kLevels));
  }
  return OkStatus();
}

}  // namespace

kvt_thought_options_t DefaultThoughtOptions() {
  kvt_thought_options_t options = {};
  options.struct_size = sizeof options;
  options.scope = KVT_SELECT_EACH_HEAD;
  options.budget = 1024;
  options.least = 0.01f;
  return options;
}

StatusOr<std::pair<float, float>> ThoughtThresholds(absl::Span<const float> sparsities) {
  constexpr size_t kLeast = 16, kGrid = 512;
  if (sparsities.size() < kLeast) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("count is ", sparsities.size(), ", expected at least ", kLeast));
  }
  for (size_t i = 0; i < sparsities.size(); ++i) {
    if (!(sparsities[i] >= 0 && sparsities[i] <= 1)) {
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("sparsities[", i, "] is ", sparsities[i], ", expected 0 to 1"));
    }
  }
  std::vector<double> sorted(sparsities.begin(), sparsities.end());
  std::sort(sorted.begin(), sorted.end());
  const double count = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double variance = 0;
  for (const double value : sorted) variance += (value - mean) * (value - mean) / count;
  // Silverman's rule takes one bump for granted; a third of it leaves three of equal size apart.
  const double width = std::max(0.3 * std::sqrt(variance) * std::pow(count, -0.2), 1e-4);
  std::vector<double> density(kGrid);
  for (size_t i = 0; i < kGrid; ++i) {
    const double at = static_cast<double>(i) / (kGrid - 1);
    for (const double value : sorted) {
      const double z = (at - value) / width;
      density[i] += std::exp(-0.5 * z * z);
    }
  }
  // Maxima that are worth a twentieth of the highest; smaller ones are noise.
  const double least = *std::max_element(density.begin(), density.end()) / 20;
  std::vector<size_t> maxima;
  for (size_t i = 0; i < kGrid; ++i) {
    const bool rises = i == 0 || density[i] > density[i - 1];
    size_t end = i;
    while (end + 1 < kGrid && density[end + 1] == density[i]) ++end;
    if (rises && (end + 1 == kGrid || density[end + 1] < density[i]) && density[i] >= least)
      maxima.push_back((i + end) / 2);
  }
  if (maxima.size() != 3) {
    return Error(KVT_ERR_NOT_FOUND, absl::StrCat("sparsities: their density has ", maxima.size(),
                                                 " maxima, expected 3; take the mean of other layers"));
  }
  const auto valley = [&](size_t from, size_t to) {
    const auto lowest = std::min_element(density.begin() + static_cast<ptrdiff_t>(from),
                                         density.begin() + static_cast<ptrdiff_t>(to));
    return static_cast<float>(lowest - density.begin()) / (kGrid - 1);
  };
  return std::pair(valley(maxima[0], maxima[1]), valley(maxima[1], maxima[2]));
}

StatusOr<Thinner> Thinner::Check(const kvt_thought_options_t& options) {
  const auto bad = [](absl::string_view field, auto value, absl::string_view expected) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_thought_options.", field, " is ", value, ", expected ", expected));
  };
  if (options.scope != KVT_SELECT_EACH_HEAD && options.scope != KVT_SELECT_SEQUENCE)
    return bad("scope", options.scope, "KVT_SELECT_EACH_HEAD or KVT_SELECT_SEQUENCE");
  if (options.budget == 0) return bad("budget", 0, "at least 1");
  if (!(options.least > 0 && options.least < 1)) return bad("least", options.least, "between 0 and 1");
  if (!(options.scale >= 0 && std::isfinite(options.scale))) return bad("scale", options.scale, "0 or more");
  return Thinner(options);
}

std::vector<float> Thinner::Sparsities(const Model& model, const View& view,
                                       const Attention& attention) const {
  const float scale = LogitScale(model, options_.scale);
  std::vector<float> sparsities;
  for (uint32_t layer = attention.layer_begin(); layer < attention.layer_end(); ++layer) {
    double sum = 0;
    for (uint32_t head = view.head_begin(); head < view.head_end(); ++head) {
      const Rows keys = attention.from_queries() ? LoadKeys(model, view, layer, head) : Rows();
      sum += attention.SparsityOf(layer, head, keys, scale, options_.least);
    }
    sparsities.push_back(static_cast<float>(sum / (view.head_end() - view.head_begin())));
  }
  return sparsities;
}

Status Thinner::Step(absl::Span<kvt_thought_t> thoughts) const {
  KVT_RETURN_IF_ERROR(CheckThoughts(thoughts));
  const auto earlier = thoughts.first(thoughts.empty() ? 0 : thoughts.size() - 1);
  if (!thoughts.empty() && thoughts.back().kind == KVT_THOUGHT_TRANSITION) {
    for (kvt_thought_t& thought : earlier) thought.level = std::min(thought.level + 1, kLevels);
  }
  const auto kept = [&] {
    uint64_t sum = 0;
    for (const kvt_thought_t& thought : thoughts) sum += KeptAt(thought, thought.level);
    return sum;
  };
  for (uint64_t now = kept(); now > options_.budget; now = kept()) {
    kvt_thought_t* least = nullptr;
    for (kvt_thought_t& thought : earlier) {
      if (thought.level < kLevels && (least == nullptr || Rank(thought.kind) < Rank(least->kind)))
        least = &thought;
    }
    if (least == nullptr) break;
    ++least->level;
  }
  for (kvt_thought_t& thought : thoughts) {
    thought.keep = static_cast<uint32_t>(KeptAt(thought, thought.level));
    thought.bits = thought.kind == KVT_THOUGHT_TRANSITION ? 2 : 4;
  }
  return OkStatus();
}

StatusOr<uint64_t> Thinner::Entries(const View& view, absl::Span<const kvt_thought_t> thoughts) const {
  KVT_RETURN_IF_ERROR(CheckThoughts(thoughts));
  uint64_t held = options_.prefix, dropped = 0;
  for (size_t i = 0; i < thoughts.size(); ++i) {
    if (thoughts[i].keep == 0 || thoughts[i].keep > thoughts[i].held) {
      return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("thoughts[", i, "].keep is ", thoughts[i].keep,
                                                          ", expected 1 to held ", thoughts[i].held));
    }
    held += thoughts[i].held;
    dropped += thoughts[i].held - thoughts[i].keep;
  }
  if (held > view.tokens() || view.tokens() > UINT32_MAX) {
    return Error(KVT_ERR_OUT_OF_RANGE, absl::StrCat("prefix ", options_.prefix, " and thoughts hold ", held,
                                                    " tokens, the view has ", view.tokens()));
  }
  return (options_.scope == KVT_SELECT_SEQUENCE ? 1 : Parts(view)) * (view.tokens() - dropped);
}

Rows Thinner::KeysOf(const Model& model, const View& view, size_t choice) const {
  const uint32_t heads = view.head_end() - view.head_begin();
  const auto load = [&](size_t part) {
    return LoadKeys(model, view, view.layer_begin() + static_cast<uint32_t>(part / heads),
                    view.head_begin() + static_cast<uint32_t>(part % heads));
  };
  if (options_.scope == KVT_SELECT_EACH_HEAD) return load(choice);
  Rows all;
  const size_t parts = Parts(view), width = model.head_dim(KVT_STREAM_K);
  all.width = width * parts;
  all.values.resize(all.width * view.tokens());
  for (size_t part = 0; part < parts; ++part) {
    const Rows keys = load(part);
    for (uint64_t t = 0; t < view.tokens(); ++t)
      std::copy(keys.row(t), keys.row(t) + width, all.row(t) + part * width);
  }
  return all;
}

std::vector<uint32_t> Thinner::Choose(const Model& model, const View& view,
                                      absl::Span<const kvt_thought_t> thoughts) const {
  std::vector<uint32_t> chosen;
  const size_t choices = options_.scope == KVT_SELECT_SEQUENCE ? 1 : Parts(view);
  for (size_t choice = 0; choice < choices; ++choice) {
    const Rows keys = KeysOf(model, view, choice);
    uint32_t at = 0;
    const auto keep_until = [&](uint64_t end) {
      for (; at < end; ++at) chosen.push_back(at);
    };
    keep_until(options_.prefix);
    for (const kvt_thought_t& thought : thoughts) {
      if (thought.keep == thought.held) {
        keep_until(at + thought.held);
        continue;
      }
      Rows part;
      part.width = keys.width;
      part.values.assign(keys.row(at), keys.row(at) + part.width * thought.held);
      for (const uint32_t kept : Representatives(part, thought.keep, options_.seed + choice))
        chosen.push_back(at + kept);
      at += thought.held;
    }
    keep_until(view.tokens());
  }
  return chosen;
}

}  // namespace kvt
