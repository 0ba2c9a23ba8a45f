// Merges as CaM makes them: a token that is dropped leaves its V to kept tokens behind it.
//
// Immutable after Check, so thread-safe; Apply writes the host's rows.
#ifndef KVARTET_LIB_SELECT_MERGE_H_
#define KVARTET_LIB_SELECT_MERGE_H_

#include <vector>

#include "absl/types/span.h"
#include "kvartet/select.h"
#include "select/attention.h"

namespace kvt {

kvt_merge_options_t DefaultMergeOptions();

class Merger {
 public:
  // `options` has been through ReadStruct. KVT_ERR_INVALID_ARGUMENT.
  static StatusOr<Merger> Check(const kvt_merge_options_t& options);

  // The merges of the tokens that `tokens`, choices one after another, leave out. KVT_ERR_INVALID_ARGUMENT
  // (choices that are not ascending tokens of the view).
  StatusOr<std::vector<kvt_merge_t>> Plan(const Model& model, const View& view, const Attention& attention,
                                          absl::Span<const uint32_t> tokens) const;

 private:
  explicit Merger(const kvt_merge_options_t& options) : options_(options) {}

  const kvt_merge_options_t options_;
};

// Adds what merges say to the V rows of kept tokens; every row is read before any is written, and rounded
// once. KVT_ERR_INVALID_ARGUMENT, KVT_ERR_OUT_OF_RANGE (a merge beyond the view or `tokens`),
// KVT_ERR_UNSUPPORTED.
Status ApplyMerges(const Model& model, const View& view, absl::Span<const uint32_t> tokens,
                   absl::Span<const kvt_merge_t> merges);

}  // namespace kvt

#endif  // KVARTET_LIB_SELECT_MERGE_H_
