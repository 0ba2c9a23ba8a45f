#include "engine/recorder.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

namespace kvt::engine {
namespace {

constexpr std::string_view kNorm = "attn_norm-";  // and the number of the layer

std::string_view NameOf(const ggml_tensor& node) { return node.name; }

bool HasTokens(const ggml_tensor& tensor, size_t elements, int32_t count) {
  return tensor.type == GGML_TYPE_F32 && tensor.ne[0] == static_cast<int64_t>(elements) &&
         tensor.ne[1] == count && tensor.nb[0] == sizeof(float);
}

}  // namespace

Recorder::Recorder(const Geometry& geometry, int32_t every)
    : layers_(static_cast<size_t>(geometry.kv.layers)),
      heads_(static_cast<size_t>(geometry.heads)),
      dim_(static_cast<size_t>(geometry.kv.head_dim_k)),
      width_(static_cast<size_t>(geometry.width)),
      every_(every),
      rows_(layers_) {}

void Recorder::Begin(int32_t begin, int32_t count) {
  count_ = count;
  chosen_.clear();
  for (int32_t i = every_ - 1 - begin % every_; i < count; i += every_) {
    if (begin + i < from_) continue;
    chosen_.push_back(i);
    positions_.push_back(begin + i);
  }
  attentions_ = 0;
  refusal_.clear();
}

Status Recorder::End() {
  for (size_t layer = 0; layer < layers_ && refusal_.empty(); ++layer) {
    if (rows_[layer].queries.size() != positions_.size() * heads_ * dim_)
      Refuse("queries of layer " + std::to_string(layer));
    else if (rows_[layer].residual.size() != positions_.size())
      Refuse("the input of layer " + std::to_string(layer));
  }
  count_ = 0;
  chosen_.clear();
  if (refusal_.empty()) return Done{};
  return Error{ErrorKind::kUnsupported, "the engine's graph does not show " + refusal_};
}

void Recorder::Cut(int32_t length) {
  const auto kept = std::lower_bound(positions_.begin(), positions_.end(), length) - positions_.begin();
  const auto rows = static_cast<size_t>(kept);
  positions_.resize(rows);
  for (Layer& layer : rows_) {
    layer.queries.resize(std::min(layer.queries.size(), rows * heads_ * dim_));
    layer.residual.resize(std::min(layer.residual.size(), rows));
  }
}

Captured Recorder::Take() {
  Captured captured;
  captured.layers = layers_;
  captured.heads = heads_;
  captured.dim = dim_;
  captured.positions.swap(positions_);
  const size_t rows = captured.rows();
  captured.queries.resize(layers_ * heads_ * rows * dim_);
  float* to = captured.queries.data();
  for (Layer& layer : rows_) {
    for (size_t head = 0; head < heads_; ++head) {
      for (size_t row = 0; row < rows; ++row, to += dim_)
        std::memcpy(to, layer.queries.data() + (row * heads_ + head) * dim_, dim_ * sizeof(float));
    }
    captured.residual.insert(captured.residual.end(), layer.residual.begin(), layer.residual.end());
    layer = {};
  }
  return captured;
}

bool Recorder::OnNode(ggml_tensor* node, bool ask, void* self) {
  auto* recorder = static_cast<Recorder*>(self);
  if (ask) return recorder->Wants(*node);
  recorder->See(*node);
  return true;
}

bool Recorder::Wants(const ggml_tensor& node) const {
  if (chosen_.empty()) return false;
  return node.op == GGML_OP_FLASH_ATTN_EXT || NameOf(node).substr(0, kNorm.size()) == kNorm;
}

void Recorder::See(const ggml_tensor& node) {
  if (node.op == GGML_OP_FLASH_ATTN_EXT) {
    SeeQueries(*node.src[0]);
  } else {
    SeeResidual(node);
  }
}

void Recorder::SeeQueries(const ggml_tensor& queries) {
  const size_t layer = attentions_++;
  if (layer >= layers_ || !HasTokens(queries, dim_, count_) ||
      queries.ne[2] != static_cast<int64_t>(heads_) || queries.ne[3] != 1)
    return Refuse("queries of attention " + std::to_string(layer) + " as rows of the model's heads");
  std::vector<float>& rows = rows_[layer].queries;
  rows.reserve(rows.size() + chosen_.size() * heads_ * dim_);
  std::vector<float> row(dim_);
  for (const int32_t token : chosen_) {
    for (size_t head = 0; head < heads_; ++head) {
      ggml_backend_tensor_get(&queries, row.data(),
                              static_cast<size_t>(token) * queries.nb[1] + head * queries.nb[2],
                              dim_ * sizeof(float));
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
}

void Recorder::SeeResidual(const ggml_tensor& norm) {
  const std::string_view number = NameOf(norm).substr(kNorm.size());
  size_t layer = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), layer);
  const ggml_tensor* node = &norm;
  while (node != nullptr && (node->op == GGML_OP_MUL || node->op == GGML_OP_ADD)) node = node->src[0];
  const bool found = node != nullptr && (node->op == GGML_OP_RMS_NORM || node->op == GGML_OP_NORM);
  if (error != std::errc() || end != number.data() + number.size() || layer >= layers_ || !found ||
      !HasTokens(*node->src[0], width_, count_))
    return Refuse("the input of '" + std::string(NameOf(norm)) + "' as rows of the model's width");
  const ggml_tensor& residual = *node->src[0];
  std::vector<float> row(width_);
  for (const int32_t token : chosen_) {
    ggml_backend_tensor_get(&residual, row.data(), static_cast<size_t>(token) * residual.nb[1],
                            width_ * sizeof(float));
    double square = 0;
    for (const float value : row) square += double{value} * double{value};
    rows_[layer].residual.push_back(static_cast<float>(square / static_cast<double>(width_)));
  }
}

void Recorder::Refuse(const std::string& why) {
  if (refusal_.empty()) refusal_ = why;
}

}  // namespace kvt::engine
