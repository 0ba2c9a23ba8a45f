#include "kvartet/selection_policy.h"

#include <algorithm>
#include <numeric>

#include "kvartet/captured_attention.h"

namespace kvt::cli {
namespace {

// R-KV's own pooling; the library's defaults are SnapKV's.
constexpr uint32_t kRkvPool = 7;

kvt_thought_options_t ThoughtOptions() {
  kvt_thought_options_t options;
  kvt_thought_options_init(&options, sizeof options);
  options.scope = KVT_SELECT_SEQUENCE;
  return options;
}

// The mean over layers.
float Sparsity(const Model& model, const engine::KvBlob& rows, const CapturedAttention& attention) {
  const kvt_thought_options_t options = ThoughtOptions();
  const BlobView view(rows);
  std::vector<float> layers(static_cast<size_t>(rows.geometry().layers));
  size_t needed = 0;
  Check(kvt_thought_sparsity(model.get(), view.get(), attention.get(), &options, layers.data(), layers.size(),
                             &needed),
        "kvt_thought_sparsity");
  return std::accumulate(layers.begin(), layers.end(), 0.0f) / static_cast<float>(layers.size());
}

}  // namespace

std::vector<SelectionMethod> PrefillMethods() {
  return {{"recent", KVT_SELECT_RECENT, false},
          {"snapkv", KVT_SELECT_SNAPKV, false},
          {"snapkv+cam", KVT_SELECT_SNAPKV, true}};
}

std::vector<SelectionMethod> LongMethods() {
  return {{"recent", KVT_SELECT_RECENT, false}, {"rkv", KVT_SELECT_RKV, false}, {"thinkv", 0, false}};
}

ThoughtThresholds FindThresholds(const Model& model, const engine::KvBlob& rows,
                                 const engine::Captured& captured) {
  std::vector<float> sparsities;
  for (size_t first = 0; first + kPieceTokens <= captured.rows(); first += kPieceTokens) {
    const CapturedAttention attention(captured, first, kPieceTokens, rows.positions());
    sparsities.push_back(Sparsity(model, rows, attention));
  }
  constexpr size_t kLeastPieces = 16;
  if (sparsities.size() < kLeastPieces) return std::nullopt;
  std::pair<float, float> thresholds;
  const kvt_status_t status =
      kvt_thought_thresholds(sparsities.data(), sparsities.size(), &thresholds.first, &thresholds.second);
  if (status == KVT_ERR_NOT_FOUND) return std::nullopt;
  Check(status, "kvt_thought_thresholds");
  return thresholds;
}

SelectionPolicy::SelectionPolicy(const Model& model, const SelectionMethod& method,
                                 const SelectionLimits& limits)
    : model_(model), method_(method), limits_(limits) {}

int32_t SelectionPolicy::Observed(int32_t since) const {
  if (method_.policy == KVT_SELECT_RECENT) return 0;
  return method_.policy == 0 ? since : std::min(since, static_cast<int32_t>(limits_.window));
}

std::vector<uint32_t> SelectionPolicy::Choose(const engine::KvBlob& rows, const engine::Captured& captured) {
  if (method_.policy == 0) return ChooseThoughts(rows, captured);
  kvt_select_options_t options;
  kvt_select_options_init(&options, sizeof options);
  options.policy = method_.policy;
  options.scope = KVT_SELECT_SEQUENCE;
  options.budget = limits_.budget;
  options.sinks = limits_.first;
  options.window = limits_.window;
  if (method_.policy == KVT_SELECT_RKV) {
    options.pool = kRkvPool;
    options.pooling = KVT_POOL_MAX;
  }
  const CapturedAttention attention(captured, 0, captured.rows(), rows.positions());
  const BlobView view(rows);
  std::vector<uint32_t> tokens(limits_.budget);
  size_t needed = 0;
  Check(kvt_select_tokens(model_.get(), view.get(),
                          method_.policy == KVT_SELECT_RECENT ? nullptr : attention.get(), &options,
                          tokens.data(), tokens.size(), &needed),
        "kvt_select_tokens");
  tokens.resize(needed);
  return tokens;
}

bool SelectionPolicy::Merge(engine::KvBlob* rows, const engine::Captured& captured,
                            const std::vector<uint32_t>& kept) const {
  const size_t dropped = static_cast<size_t>(rows->tokens()) - kept.size();
  if (!method_.merge || dropped == 0) return false;
  kvt_merge_options_t options;
  kvt_merge_options_init(&options, sizeof options);
  options.scope = KVT_SELECT_SEQUENCE;
  options.window = limits_.window;
  const CapturedAttention attention(captured, 0, captured.rows(), rows->positions());
  const BlobView view(*rows);
  const engine::KvGeometry& geometry = rows->geometry();
  std::vector<kvt_merge_t> merges(dropped * static_cast<size_t>(geometry.layers * geometry.kv_heads));
  size_t needed = 0;
  Check(kvt_select_merges(model_.get(), view.get(), attention.get(), &options, kept.data(), kept.size(),
                          merges.data(), merges.size(), &needed),
        "kvt_select_merges");
  Check(kvt_merges_apply(model_.get(), view.get(), kept.data(), kept.size(), merges.data(), needed),
        "kvt_merges_apply");
  return true;
}

uint32_t SelectionPolicy::KindOf(float sparsity) const {
  if (!limits_.thresholds) return KVT_THOUGHT_REASONING;
  if (sparsity < limits_.thresholds->first) return KVT_THOUGHT_EXECUTION;
  return sparsity > limits_.thresholds->second ? KVT_THOUGHT_TRANSITION : KVT_THOUGHT_REASONING;
}

// What came since the last choice is the thought that has just ended.
std::vector<uint32_t> SelectionPolicy::ChooseThoughts(const engine::KvBlob& rows,
                                                      const engine::Captured& captured) {
  kvt_thought_options_t options = ThoughtOptions();
  options.budget = limits_.budget - limits_.first;
  options.prefix = limits_.first;
  const CapturedAttention attention(captured, 0, captured.rows(), rows.positions());
  kvt_thought_t thought = {};
  thought.kind = KindOf(Sparsity(model_, rows, attention));
  thought.length = static_cast<uint32_t>(rows.tokens()) - limits_.first;
  for (const kvt_thought_t& earlier : thoughts_) thought.length -= earlier.held;
  thought.held = thought.length;
  thoughts_.push_back(thought);
  Check(kvt_thoughts_step(&options, thoughts_.data(), thoughts_.size()), "kvt_thoughts_step");
  const BlobView view(rows);
  std::vector<uint32_t> tokens(static_cast<size_t>(rows.tokens()));
  size_t needed = 0;
  Check(kvt_select_thoughts(model_.get(), view.get(), &options, thoughts_.data(), thoughts_.size(),
                            tokens.data(), tokens.size(), &needed),
        "kvt_select_thoughts");
  tokens.resize(needed);
  for (kvt_thought_t& each : thoughts_) each.held = each.keep;
  return tokens;
}

}  // namespace kvt::cli
