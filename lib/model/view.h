// View: a checked, owned copy of a kvt_view_t's description (base pointers, strides, block table); the rows
// stay the host's.
//
// Immutable after Check; thread-safe as far as the host's memory is.
#ifndef KVARTET_LIB_MODEL_VIEW_H_
#define KVARTET_LIB_MODEL_VIEW_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/model.h"

namespace kvt {

class View {
 public:
  // Checks every field against the model and copies pointer arrays. KVT_ERR_INVALID_ARGUMENT,
  // KVT_ERR_MISMATCH (layers or heads that the model has not), KVT_ERR_UNAVAILABLE (device memory), each with
  // field and value.
  static StatusOr<View> Check(const Model& model, const kvt_view_t* view);

  uint32_t element() const { return element_; }
  uint32_t layer_begin() const { return layer_begin_; }
  uint32_t layer_end() const { return layer_end_; }
  uint32_t head_begin() const { return head_begin_; }
  uint32_t head_end() const { return head_end_; }
  uint64_t tokens() const { return tokens_; }
  uint64_t first_position() const { return first_position_; }
  int64_t head_stride(uint32_t stream) const { return head_stride_[stream]; }
  int64_t element_stride(uint32_t stream) const { return element_stride_[stream]; }

  // First element of the first head of a token. `layer` is absolute (as in the model).
  uint8_t* Token(uint32_t layer, uint32_t stream, uint64_t token) const {
    uint8_t* base = bases_[static_cast<size_t>(layer - layer_begin_) * streams_ + stream];
    if (table_.empty()) return base + static_cast<int64_t>(token) * token_stride_[stream];
    return base + table_[token / page_tokens_] * page_stride_[stream] +
           static_cast<int64_t>(token % page_tokens_) * token_stride_[stream];
  }
  // How many tokens from `token` on lie one token_stride apart (to the end of the page, or of the view).
  uint64_t Run(uint64_t token) const {
    return table_.empty() ? tokens_ - token : std::min(page_tokens_ - token % page_tokens_, tokens_ - token);
  }
  int64_t token_stride(uint32_t stream) const { return token_stride_[stream]; }

 private:
  View() = default;
  uint32_t streams_ = 2, element_ = 0, layer_begin_ = 0, layer_end_ = 0, head_begin_ = 0, head_end_ = 0;
  std::vector<uint8_t*> bases_;
  std::vector<int32_t> table_;
  int64_t token_stride_[2] = {}, head_stride_[2] = {}, element_stride_[2] = {}, page_stride_[2] = {};
  uint64_t page_tokens_ = 1, tokens_ = 0, first_position_ = 0;
};

}  // namespace kvt

#endif  // KVARTET_LIB_MODEL_VIEW_H_
