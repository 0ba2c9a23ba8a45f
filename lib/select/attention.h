// Attention: what queries of a sequence look at, as the host gives it: rows of attention, or queries from
// which rows are computed with the view's keys.
//
// Immutable after Check; thread-safe as far as the host's memory is.
#ifndef KVARTET_LIB_SELECT_ATTENTION_H_
#define KVARTET_LIB_SELECT_ATTENTION_H_

#include <vector>

#include "kvartet/select.h"
#include "model/view.h"

namespace kvt {

// A matrix by rows.
struct Rows {
  size_t width = 0;
  std::vector<float> values;

  float* row(size_t i) { return values.data() + i * width; }
  const float* row(size_t i) const { return values.data() + i * width; }
  size_t count() const { return width == 0 ? 0 : values.size() / width; }
};

// KVT_ERR_UNSUPPORTED for keys of fp8.
Status CheckKeys(const View& view);

// What logits are multiplied by: `given`, or 1 / sqrt(k_dim) when that is 0.
float LogitScale(const Model& model, float given);

// The keys of a layer and KV head as floats; NaN is 0 and everything beyond the finite f32 its bound.
Rows LoadKeys(const Model& model, const View& view, uint32_t layer, uint32_t head);

// Rows packed for products (cpu/dots.h).
std::vector<float> Packed(const Rows& rows);

class Attention {
 public:
  // Rows that fit a choice of tokens, which holds all rows of a group at a time.
  static constexpr uint32_t kRowsOfChoice = 256;

  // Checks every field against the view. KVT_ERR_INVALID_ARGUMENT, KVT_ERR_OUT_OF_RANGE.
  static StatusOr<Attention> Check(const View& view, const kvt_attention_t* attention, uint32_t rows_max);

  uint32_t layer_begin() const { return given_.layer_begin; }
  uint32_t layer_end() const { return given_.layer_end; }
  bool from_queries() const { return given_.kind == KVT_ATTENTION_QUERIES; }
  // The token of each row, ascending.
  const std::vector<uint32_t>& row_tokens() const { return row_tokens_; }

  // The attention that each token gets from queries at least `distance` tokens later, summed over queries and
  // the heads of `head`'s group. `keys` are read for queries only.
  std::vector<float> MassOf(uint32_t layer, uint32_t head, const Rows& keys, float scale,
                            uint32_t distance) const;
  // Attention of the whole group, one row a query: the heads' highest logits, or of given rows the highest
  // attention; then made to sum to 1.
  Rows HighestOf(uint32_t layer, uint32_t head, const Rows& keys, float scale) const;
  // Of the tokens that a query sees, the share that get less than `least` times what the one most looked at
  // gets; the mean over queries and the heads of `head`'s group.
  double SparsityOf(uint32_t layer, uint32_t head, const Rows& keys, float scale, float least) const;

 private:
  Attention(const kvt_attention_t& given, uint32_t head_begin, uint32_t group, uint64_t tokens,
            std::vector<uint32_t> row_tokens)
      : given_(given),
        head_begin_(head_begin),
        group_(group),
        tokens_(tokens),
        row_tokens_(std::move(row_tokens)) {}

  const float* Row(uint32_t layer, uint32_t query_head, uint32_t row) const;
  // Logits of queries, or rows as they are given.
  Rows Gather(uint32_t layer, uint32_t head, const Rows& keys) const;
  // Calls body(token, row) for each query of the group: its token, and its logits or its row as it is given,
  // to be changed at will, over the tokens that it sees.
  template <typename Body>
  void ForEachRow(uint32_t layer, uint32_t head, const Rows& keys, const Body& body) const;
  // Tokens that the query of a row sees.
  uint64_t Seen(uint32_t row) const { return uint64_t{row_tokens_[row]} + 1; }

  kvt_attention_t given_;
  uint32_t head_begin_, group_;
  uint64_t tokens_;
  std::vector<uint32_t> row_tokens_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_SELECT_ATTENTION_H_
