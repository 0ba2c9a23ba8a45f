// A model, and host memory with a view of it, for tests of codecs and frames.
#ifndef KVARTET_TESTS_UNIT_CODEC_CODEC_FIXTURE_H_
#define KVARTET_TESTS_UNIT_CODEC_CODEC_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "common/element.h"

namespace kvt::test {

struct ModelShape {
  uint32_t layout = KVT_LAYOUT_KV;
  uint32_t layers = 2, heads = 2, k_dim = 16, v_dim = 16;
  uint32_t element = KVT_ELEMENT_F16;
  std::string id = "weights";
};

inline std::shared_ptr<const Model> MakeModel(const ModelShape& shape) {
  kvt_model_options_t options = {};
  options.struct_size = sizeof options;
  options.layout = shape.layout;
  options.model_id = reinterpret_cast<const uint8_t*>(shape.id.data());
  options.model_id_len = shape.id.size();
  options.layers = shape.layers;
  options.kv_heads = shape.heads;
  options.k_dim = shape.k_dim;
  options.v_dim = shape.layout == KVT_LAYOUT_MLA ? 0 : shape.v_dim;
  options.element = shape.element;
  options.rope_magnitude = 1;
  auto model = Model::Create(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

enum class Layout { kDense, kPaged, kStrided };

// Host memory of whole layers in one of three layouts: tokens one after another; pages in a scrambled order;
// elements of a row far apart (each element's tokens one after another).
class Memory {
 public:
  Memory(std::shared_ptr<const Model> model, Layout layout, uint32_t element, uint64_t tokens,
         uint64_t first_position = 0)
      : model_(std::move(model)), element_(element), tokens_(tokens) {
    const auto width = static_cast<int64_t>(ElementBytes(element));
    view_ = {};
    view_.struct_size = sizeof view_;
    view_.memory = KVT_MEMORY_HOST;
    view_.element = element;
    view_.layer_end = model_->layers();
    view_.head_end = model_->kv_heads();
    view_.tokens = tokens;
    view_.first_position = first_position;
    const uint64_t pages = (tokens + kPageTokens - 1) / kPageTokens;
    const uint64_t held = pages * kPageTokens;
    for (uint32_t stream = 0; stream < model_->streams(); ++stream) {
      const int64_t dim = model_->head_dim(stream), heads = model_->kv_heads();
      if (layout == Layout::kStrided) {
        view_.token_stride[stream] = width;
        view_.element_stride[stream] = width * static_cast<int64_t>(held);
      } else {
        view_.token_stride[stream] = width * dim * heads;
        view_.element_stride[stream] = width;
      }
      view_.head_stride[stream] = view_.element_stride[stream] * dim;
      view_.page_stride[stream] = view_.token_stride[stream] * static_cast<int64_t>(kPageTokens);
    }
    for (uint32_t layer = 0; layer < model_->layers(); ++layer) {
      for (uint32_t stream = 0; stream < model_->streams(); ++stream) {
        const uint64_t bytes = held * model_->kv_heads() * model_->head_dim(stream) * ElementBytes(element);
        storage_.emplace_back(bytes, uint8_t{0xcd});
        bases_.push_back(storage_.back().data());
      }
    }
    view_.bases = bases_.data();
    view_.base_count = bases_.size();
    if (layout == Layout::kPaged) {
      // Backwards, with the first two pages swapped.
      for (uint64_t page = 0; page < pages; ++page) table_.push_back(static_cast<int32_t>(pages - 1 - page));
      if (pages > 2) std::swap(table_[0], table_[1]);
      view_.block_table = table_.data();
      view_.block_table_len = table_.size();
      view_.page_tokens = kPageTokens;
    }
  }

  kvt_view_t* description() { return &view_; }
  View view() const {
    auto view = View::Check(*model_, &view_);
    EXPECT_TRUE(view.ok()) << view.status();
    return *view;
  }

  float Get(uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) const {
    return kernels::LoadElement(kernels::Element{element_}, At(layer, stream, token, head, e), 0);
  }
  void Set(uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e, float value) {
    kernels::StoreElement(kernels::Element{element_}, value, At(layer, stream, token, head, e), 0);
  }
  uint8_t* At(uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) const {
    auto* base = static_cast<uint8_t*>(bases_[layer * model_->streams() + stream]);
    const auto at = static_cast<int64_t>(token);
    const int64_t place = table_.empty() ? at * view_.token_stride[stream]
                                         : table_[token / kPageTokens] * view_.page_stride[stream] +
                                               at % kPageTokens * view_.token_stride[stream];
    return base + place + head * view_.head_stride[stream] + e * view_.element_stride[stream];
  }

  // Calls body(layer, stream, token, head, element) for every element.
  template <typename Body>
  void ForEach(const Body& body) const {
    for (uint32_t layer = 0; layer < model_->layers(); ++layer)
      for (uint32_t stream = 0; stream < model_->streams(); ++stream)
        for (uint64_t token = 0; token < tokens_; ++token)
          for (uint32_t head = 0; head < model_->kv_heads(); ++head)
            for (uint32_t e = 0; e < model_->head_dim(stream); ++e) body(layer, stream, token, head, e);
  }

  // K with a few channels much larger than the others, as models have.
  void Fill(uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 1);
    ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      const float size = stream == 0 && e % 7 == 3 ? 20.0f : 1.0f;
      Set(layer, stream, token, head, e, normal(random) * size + (e % 5 == 0 ? 3.0f : 0.0f));
    });
  }
  // Every bit pattern, NaN payloads included.
  void FillBits(uint32_t seed) {
    std::mt19937 random(seed);
    for (auto& block : storage_)
      for (uint8_t& byte : block) byte = static_cast<uint8_t>(random());
  }

 private:
  static constexpr uint32_t kPageTokens = 4;
  std::shared_ptr<const Model> model_;
  uint32_t element_;
  uint64_t tokens_;
  kvt_view_t view_;
  std::vector<std::vector<uint8_t>> storage_;
  std::vector<void*> bases_;
  std::vector<int32_t> table_;
};

inline std::shared_ptr<const Codec> MakeCodec(std::shared_ptr<const Model> model, const std::string& name,
                                              uint32_t group_tokens = 32, uint32_t group_channels = 32) {
  kvt_codec_options_t options = {};
  options.struct_size = sizeof options;
  options.name = name.data();
  options.name_len = name.size();
  options.group_tokens = group_tokens;
  options.group_channels = group_channels;
  auto codec = Codec::Create(std::move(model), options);
  EXPECT_TRUE(codec.ok()) << codec.status();
  return codec.ok() ? *codec : nullptr;
}

inline FrameSpec MakeSpec(const View& view, uint32_t exempt_first = 0, uint32_t exempt_last = 0) {
  kvt_frame_spec_t spec = {};
  spec.struct_size = sizeof spec;
  spec.token_count = view.tokens();
  spec.exempt_first = exempt_first;
  spec.exempt_last = exempt_last;
  for (size_t i = 0; i < sizeof spec.key; ++i) spec.key[i] = static_cast<uint8_t>(i + 1);
  std::memset(spec.namespace_digest, 0x77, sizeof spec.namespace_digest);
  auto checked = FrameSpec::Check(view, &spec);
  EXPECT_TRUE(checked.ok()) << checked.status();
  return *checked;
}

inline std::vector<uint8_t> Encode(const Codec& codec, const View& view, const FrameSpec& spec,
                                   CodecReport* report = nullptr) {
  auto bound = codec.Bound(view, spec);
  EXPECT_TRUE(bound.ok()) << bound.status();
  std::vector<uint8_t> frame(*bound, 0xee);
  auto encoded = codec.Encode(view, spec, MutableBytes(frame.data(), frame.size()));
  EXPECT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_LE(encoded->frame_bytes, *bound);
  frame.resize(encoded->frame_bytes);
  if (report != nullptr) *report = *encoded;
  return frame;
}

inline constexpr const char* kLossyCodecs[] = {"int8",  "fp8",      "fp8_e5m2", "kivi2",    "kivi4",
                                               "kivi8", "rotated2", "rotated3", "rotated4", "rotated4v2"};
inline constexpr const char* kCodecs[] = {"raw",   "int8",     "fp8",      "fp8_e5m2", "kivi2",     "kivi4",
                                          "kivi8", "rotated2", "rotated3", "rotated4", "rotated4v2"};

}  // namespace kvt::test

#endif  // KVARTET_TESTS_UNIT_CODEC_CODEC_FIXTURE_H_
