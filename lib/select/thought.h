// Thoughts as ThinKV sees them: runs of generated tokens, told apart by how sparse attention is, and thinned
// by kind and age.
//
// Immutable after Check, so thread-safe; Step writes the caller's array.
#ifndef KVARTET_LIB_SELECT_THOUGHT_H_
#define KVARTET_LIB_SELECT_THOUGHT_H_

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kvartet/select.h"
#include "select/attention.h"

namespace kvt {

kvt_thought_options_t DefaultThoughtOptions();

// The sparsities that part three kinds: the two minima of a smoothed density with three maxima.
// KVT_ERR_INVALID_ARGUMENT, KVT_ERR_NOT_FOUND (no three maxima).
StatusOr<std::pair<float, float>> ThoughtThresholds(absl::Span<const float> sparsities);

class Thinner {
 public:
  // `options` has been through ReadStruct. KVT_ERR_INVALID_ARGUMENT.
  static StatusOr<Thinner> Check(const kvt_thought_options_t& options);

  // The mean sparsity of each of the attention's layers.
  std::vector<float> Sparsities(const Model& model, const View& view, const Attention& attention) const;
  // Thins what the last thought, which has just ended, makes too much. KVT_ERR_INVALID_ARGUMENT.
  Status Step(absl::Span<kvt_thought_t> thoughts) const;
  // Entries of all choices. KVT_ERR_INVALID_ARGUMENT, KVT_ERR_OUT_OF_RANGE (more tokens than the view's).
  StatusOr<uint64_t> Entries(const View& view, absl::Span<const kvt_thought_t> thoughts) const;
  // Choices one after another. Entries was OK.
  std::vector<uint32_t> Choose(const Model& model, const View& view,
                               absl::Span<const kvt_thought_t> thoughts) const;

 private:
  explicit Thinner(const kvt_thought_options_t& options) : options_(options) {}

  // Keys of all tokens: of one layer and head, or, for a choice for the sequence, of all side by side.
  Rows KeysOf(const Model& model, const View& view, size_t choice) const;

  const kvt_thought_options_t options_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_SELECT_THOUGHT_H_
