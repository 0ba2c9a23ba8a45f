// Importance: how much attention each token of a view gets from later ones, as exponents of quantisation
// steps.
//
// Immutable after Check, so thread-safe.
#ifndef KVARTET_LIB_SELECT_IMPORTANCE_H_
#define KVARTET_LIB_SELECT_IMPORTANCE_H_

#include <vector>

#include "kvartet/select.h"
#include "select/attention.h"

namespace kvt {

kvt_importance_options_t DefaultImportanceOptions();

class Importance {
 public:
  // `options` has been through ReadStruct. KVT_ERR_INVALID_ARGUMENT.
  static StatusOr<Importance> Check(const kvt_importance_options_t& options);

  // The weight of each token: 1 where a token gets as much as the mean of its layers and heads, plus the
  // floor. Empty when no query is far enough from any token.
  std::vector<double> Weights(const Model& model, const View& view, const Attention& attention) const;
  // KVT_IMPORTANCE_MIN to KVT_IMPORTANCE_MAX for each token; all 0 where Weights are empty.
  std::vector<int8_t> Exponents(const Model& model, const View& view, const Attention& attention) const;

 private:
  explicit Importance(const kvt_importance_options_t& options) : options_(options) {}

  const kvt_importance_options_t options_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_SELECT_IMPORTANCE_H_
