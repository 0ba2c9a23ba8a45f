// A model with two query heads for each KV head, keys in memory, and queries of the last or of sampled
// tokens.
#ifndef KVARTET_TESTS_UNIT_SELECT_SELECT_FIXTURE_H_
#define KVARTET_TESTS_UNIT_SELECT_SELECT_FIXTURE_H_

#include "select/select.h"
#include "unit/codec/codec_fixture.h"

namespace kvt::test {

class Scene {
 public:
  static constexpr uint32_t kGroup = 2;

  // Queries of the last `rows` tokens; with `every`, of every so many tokens instead.
  Scene(uint64_t tokens, uint32_t rows, Layout layout = Layout::kDense, uint32_t element = KVT_ELEMENT_F32,
        uint32_t every = 0)
      : memory_(model_, layout, element, tokens),
        tokens_(tokens),
        rows_(every == 0 ? rows : static_cast<uint32_t>((tokens + every - 1) / every)) {
    for (uint32_t row = 0; row < rows_; ++row)
      row_tokens_.push_back(every == 0 ? static_cast<uint32_t>(tokens) - rows_ + row : row * every);
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0, 1);
    memory_.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      memory_.Set(layer, stream, token, head, e, normal(random));
    });
    queries_.resize(size_t{model_->layers()} * heads() * rows_ * dim());
    for (float& value : queries_) value = normal(random);
    attention_.struct_size = sizeof attention_;
    attention_.kind = KVT_ATTENTION_QUERIES;
    attention_.layer_end = model_->layers();
    attention_.heads = heads();
    attention_.rows = rows_;
    if (every != 0) attention_.row_tokens = row_tokens_.data();
    Point(queries_, dim());
  }

  uint32_t heads() const { return model_->kv_heads() * kGroup; }
  uint32_t dim() const { return model_->head_dim(0); }
  const std::shared_ptr<const Model>& model() const { return model_; }
  Memory& memory() { return memory_; }
  kvt_attention_t& attention() { return attention_; }
  const std::vector<uint32_t>& row_tokens() const { return row_tokens_; }
  float& Query(uint32_t layer, uint32_t head, uint32_t row, uint32_t e) {
    return queries_[((size_t{layer} * heads() + head) * rows_ + row) * dim() + e];
  }

  // Softmax of a query over the tokens that it sees, in double.
  std::vector<double> Reference(uint32_t layer, uint32_t head, uint32_t row) {
    std::vector<double> weights(tokens_);
    double sum = 0;
    for (uint64_t t = 0; t <= row_tokens_[row]; ++t) {
      double logit = 0;
      for (uint32_t e = 0; e < dim(); ++e)
        logit += double{Query(layer, head, row, e)} * double{memory_.Get(layer, 0, t, head / kGroup, e)};
      sum += weights[t] = std::exp(logit / std::sqrt(static_cast<double>(dim())));
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  }

  // What a query head reads when only `kept` tokens are there, in double.
  std::vector<double> Output(uint32_t layer, uint32_t head, uint32_t row, const std::vector<uint32_t>& kept) {
    const std::vector<double> weights = Reference(layer, head, row);
    std::vector<double> output(model_->head_dim(1));
    double sum = 0;
    for (const uint32_t t : kept) {
      sum += weights[t];
      for (uint32_t e = 0; e < output.size(); ++e)
        output[e] += weights[t] * double{memory_.Get(layer, 1, t, head / kGroup, e)};
    }
    for (double& value : output) value /= sum;
    return output;
  }
  // The mean squared error of what the queries of a KV head read from `kept`, against `full`.
  double OutputError(uint32_t layer, uint32_t kv_head, const std::vector<uint32_t>& kept,
                     const std::vector<std::vector<double>>& full) {
    double error = 0;
    for (size_t i = 0; i < full.size(); ++i) {
      const uint32_t head = kv_head * kGroup + static_cast<uint32_t>(i / rows_);
      const auto output = Output(layer, head, static_cast<uint32_t>(i % rows_), kept);
      for (size_t e = 0; e < output.size(); ++e) error += (output[e] - full[i][e]) * (output[e] - full[i][e]);
    }
    return error / static_cast<double>(full.size());
  }
  // What they read from all tokens.
  std::vector<std::vector<double>> FullOutputs(uint32_t layer, uint32_t kv_head) {
    std::vector<uint32_t> all(tokens_);
    for (uint32_t t = 0; t < tokens_; ++t) all[t] = t;
    std::vector<std::vector<double>> outputs;
    for (uint32_t head = kv_head * kGroup; head < (kv_head + 1) * kGroup; ++head)
      for (uint32_t row = 0; row < rows_; ++row) outputs.push_back(Output(layer, head, row, all));
    return outputs;
  }

  // The same statistics as rows of attention.
  void GiveRows() {
    given_.clear();
    for (uint32_t layer = 0; layer < model_->layers(); ++layer)
      for (uint32_t head = 0; head < heads(); ++head)
        for (uint32_t row = 0; row < rows_; ++row)
          for (const double weight : Reference(layer, head, row))
            given_.push_back(static_cast<float>(weight));
    attention_.kind = KVT_ATTENTION_ROWS;
    Point(given_, tokens_);
  }

  std::vector<uint32_t> Choose(const kvt_select_options_t& options) {
    const auto selector = Selector::Check(options);
    EXPECT_TRUE(selector.ok()) << selector.status();
    const View view = memory_.view();
    const auto attention = Attention::Check(view, &attention_, Attention::kRowsOfChoice);
    EXPECT_TRUE(attention.ok()) << attention.status();
    const Status input = selector->CheckInput(view, &*attention);
    EXPECT_TRUE(input.ok()) << input;
    return selector->Choose(*model_, view, &*attention);
  }

 private:
  void Point(const std::vector<float>& values, uint64_t width) {
    attention_.base = values.data();
    attention_.row_stride = static_cast<int64_t>(width * sizeof(float));
    attention_.head_stride = attention_.row_stride * rows_;
    attention_.layer_stride = attention_.head_stride * heads();
  }

  const std::shared_ptr<const Model> model_ = MakeModel({.k_dim = 24});
  Memory memory_;
  uint64_t tokens_;
  uint32_t rows_;
  std::vector<uint32_t> row_tokens_;
  std::vector<float> queries_, given_;
  kvt_attention_t attention_ = {};
};

}  // namespace kvt::test

#endif  // KVARTET_TESTS_UNIT_SELECT_SELECT_FIXTURE_H_
