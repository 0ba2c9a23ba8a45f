// Selector: which tokens of a view are kept. What each policy computes is said in kvartet/select.h.
//
// Immutable after Check, so thread-safe.
#ifndef KVARTET_LIB_SELECT_SELECT_H_
#define KVARTET_LIB_SELECT_SELECT_H_

#include <vector>

#include "kvartet/select.h"
#include "select/attention.h"

namespace kvt {

kvt_select_options_t DefaultSelectOptions();

class Selector {
 public:
  // `options` has been through ReadStruct. KVT_ERR_INVALID_ARGUMENT.
  static StatusOr<Selector> Check(const kvt_select_options_t& options);

  // KVT_ERR_INVALID_ARGUMENT (attention is null and the policy needs it), KVT_ERR_OUT_OF_RANGE,
  // KVT_ERR_UNSUPPORTED (keys of fp8).
  Status CheckInput(const View& view, const Attention* attention) const;
  // Choices of min(budget, tokens) ascending indices each, one after another. CheckInput was OK.
  std::vector<uint32_t> Choose(const Model& model, const View& view, const Attention* attention) const;
  // Entries of all choices.
  uint64_t Entries(const View& view, const Attention* attention) const;

 private:
  explicit Selector(const kvt_select_options_t& options) : options_(options) {}

  // A score for each token that is not of the window.
  std::vector<float> Scores(const Model& model, const View& view, const Attention& attention, uint32_t layer,
                            uint32_t head) const;
  void Pool(std::vector<float>* scores) const;
  void Append(uint64_t tokens, const std::vector<float>& scores, std::vector<uint32_t>* chosen) const;

  const kvt_select_options_t options_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_SELECT_SELECT_H_
