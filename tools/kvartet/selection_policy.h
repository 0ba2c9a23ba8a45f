// The library's ways to choose tokens, for a sequence whose cells span all layers and heads: one choice for
// them all, by scores that are summed over layers and heads (KVT_SELECT_SEQUENCE). Threads: one at a time.
#ifndef KVARTET_TOOLS_KVARTET_SELECTION_POLICY_H_
#define KVARTET_TOOLS_KVARTET_SELECTION_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "kvartet/library.h"

namespace kvt::cli {

struct SelectionMethod {
  std::string label;
  uint32_t policy = 0;  // KVT_SELECT_*; 0: by thoughts, as ThinKV
  bool merge = false;   // V of what is dropped is merged first, as in CaM
};

// Those that go with a prefill, and those that go with a long generation.
std::vector<SelectionMethod> PrefillMethods();
std::vector<SelectionMethod> LongMethods();

// Sparsities of attention that part three kinds of thoughts, the lower first.
using ThoughtThresholds = std::optional<std::pair<float, float>>;

// Thresholds out of pieces of kPieceTokens captured tokens each. Nothing when there are fewer than 16 pieces,
// or their sparsities have not three modes.
inline constexpr size_t kPieceTokens = 32;
ThoughtThresholds FindThresholds(const Model& model, const engine::KvBlob& rows,
                                 const engine::Captured& captured);

struct SelectionLimits {
  uint32_t budget = 0;  // tokens that stay
  uint32_t first = 0;   // first tokens, which all stay
  uint32_t window = 0;  // last tokens, which all stay; ThinKV keeps what came since its last choice instead
  ThoughtThresholds thresholds;  // nothing: all thoughts are of one kind
};

// A method's choices for one sequence.
class SelectionPolicy {
 public:
  SelectionPolicy(const Model& model, const SelectionMethod& method, const SelectionLimits& limits);

  // Of `since` tokens since the last choice, the last ones whose queries it wants to see.
  int32_t Observed(int32_t since) const;

  // Indices into `rows`, all that the sequence holds, of the tokens that stay: ascending. The others have to
  // be dropped. `captured` has the queries of the last Observed tokens. Throws Failure.
  std::vector<uint32_t> Choose(const engine::KvBlob& rows, const engine::Captured& captured);

  // With a method that merges: adds V of dropped rows to rows that stay, in place. Whether it did.
  bool Merge(engine::KvBlob* rows, const engine::Captured& captured, const std::vector<uint32_t>& kept) const;

 private:
  std::vector<uint32_t> ChooseThoughts(const engine::KvBlob& rows, const engine::Captured& captured);
  uint32_t KindOf(float sparsity) const;

  const Model& model_;
  const SelectionMethod method_;
  const SelectionLimits limits_;
  std::vector<kvt_thought_t> thoughts_;  // ThinKV's so far
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_SELECTION_POLICY_H_
