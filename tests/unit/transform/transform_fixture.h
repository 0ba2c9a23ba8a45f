// A model with RoPE, KV of low rank that is correlated over layers and heads, and a profile of it.
#ifndef KVARTET_TESTS_UNIT_TRANSFORM_TRANSFORM_FIXTURE_H_
#define KVARTET_TESTS_UNIT_TRANSFORM_TRANSFORM_FIXTURE_H_

#include <cmath>

#include "codec/transform/calibrator.h"
#include "model/rope.h"
#include "unit/codec/codec_fixture.h"

namespace kvt::test {

struct KvShape {
  uint32_t layout = KVT_LAYOUT_KV;
  uint32_t layers = 6, heads = 2, k_dim = 32, v_dim = 24;
  uint32_t element = KVT_ELEMENT_F16;
  uint32_t rope_style = KVT_ROPE_INTERLEAVED, rope_offset = 0, rope_dims = 32;
  std::string id = "weights";
};

inline std::shared_ptr<const Model> MakeModel(const KvShape& shape) {
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
  options.rope_style = shape.rope_style;
  if (shape.rope_style != KVT_ROPE_NONE) {
    options.rope_offset = shape.rope_offset;
    options.rope_dims = shape.rope_dims;
    options.rope_base = 10000;
  }
  options.rope_magnitude = 1;
  auto model = Model::Create(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

// Each row is a mean and a mix of kRank latents of falling size, the mix being the model's and the latents
// the document's; a little noise on top. Stream 0 is then rotated.
inline void FillCorrelated(const Model& model, Memory* memory, uint32_t document) {
  constexpr size_t kRank = 48;
  const View view = memory->view();
  std::mt19937 latent_random(1000 + document);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> latents(view.tokens() * kRank);
  for (size_t i = 0; i < latents.size(); ++i)
    latents[i] = normal(latent_random) * std::pow(0.88f, static_cast<float>(i % kRank));
  std::mt19937 mix_random(7);
  std::normal_distribution<float> mix_normal(0, 1);
  for (uint32_t layer = 0; layer < model.layers(); ++layer) {
    for (uint32_t stream = 0; stream < model.streams(); ++stream) {
      for (uint32_t head = 0; head < model.kv_heads(); ++head) {
        for (uint32_t e = 0; e < model.head_dim(stream); ++e) {
          std::array<float, kRank> mix;
          for (float& value : mix) value = mix_normal(mix_random);
          const float mean = e % 9 == 4 ? 5.0f : 0.0f;
          for (uint64_t token = 0; token < view.tokens(); ++token) {
            float value = mean + 0.01f * normal(latent_random);
            for (size_t i = 0; i < kRank; ++i) value += mix[i] * latents[token * kRank + i];
            memory->Set(layer, stream, token, head, e, value);
          }
        }
      }
    }
  }
  const Status turned = TurnRope(model, view, 0, view.tokens(), /*undo=*/false);
  EXPECT_TRUE(turned.ok()) << turned;
}

inline std::shared_ptr<Calibrator> Calibrated(const std::shared_ptr<const Model>& model,
                                              const CalibrationOptions& options = {}) {
  auto calibrator = Calibrator::Create(model, options);
  EXPECT_TRUE(calibrator.ok()) << calibrator.status();
  for (uint32_t document = 0; document < 3; ++document) {
    Memory memory(model, Layout::kDense, KVT_ELEMENT_F32, 300);
    FillCorrelated(*model, &memory, document);
    const Status added = (*calibrator)->Add(memory.view(), 0, 300);
    EXPECT_TRUE(added.ok()) << added;
  }
  return *calibrator;
}

inline std::string MakeProfile(const std::shared_ptr<const Model>& model,
                               const CalibrationOptions& options = {}) {
  auto profile = Calibrated(model, options)->Finish();
  EXPECT_TRUE(profile.ok()) << profile.status();
  return profile.ok() ? *profile : "";
}

// A profile of MakeModel({}), made once.
inline const std::string& SharedProfile() {
  static const std::string* const profile = new std::string(MakeProfile(MakeModel(KvShape())));
  return *profile;
}

inline StatusOr<std::shared_ptr<const Codec>> CreateTransform(std::shared_ptr<const Model> model,
                                                              const std::string& profile, uint32_t ratio,
                                                              const std::string& name = "transform",
                                                              uint32_t exempt = 0, uint32_t quantiser = 0) {
  kvt_codec_options_t options = {};
  options.struct_size = sizeof options;
  options.name = name.data();
  options.name_len = name.size();
  options.exempt = exempt;
  options.quantiser = quantiser;
  options.profile = AsBytes(profile).data();
  options.profile_len = profile.size();
  options.ratio = ratio;
  return Codec::Create(std::move(model), options);
}

inline std::shared_ptr<const Codec> MakeTransform(std::shared_ptr<const Model> model,
                                                  const std::string& profile, uint32_t ratio) {
  auto codec = CreateTransform(std::move(model), profile, ratio);
  EXPECT_TRUE(codec.ok()) << codec.status();
  return codec.ok() ? *codec : nullptr;
}

// The part of the variance around each channel's mean that is lost, over tokens [begin, end).
inline double LostPart(const Model& model, const Memory& was, const Memory& is, uint64_t begin,
                       uint64_t end) {
  double error = 0, energy = 0;
  for (uint32_t layer = 0; layer < model.layers(); ++layer) {
    for (uint32_t stream = 0; stream < model.streams(); ++stream) {
      for (uint32_t head = 0; head < model.kv_heads(); ++head) {
        for (uint32_t e = 0; e < model.head_dim(stream); ++e) {
          double sum = 0, squares = 0;
          for (uint64_t token = begin; token < end; ++token) {
            const double value = was.Get(layer, stream, token, head, e);
            const double miss = value - is.Get(layer, stream, token, head, e);
            error += miss * miss;
            sum += value;
            squares += value * value;
          }
          energy += squares - sum * sum / static_cast<double>(end - begin);
        }
      }
    }
  }
  return error / energy;
}

}  // namespace kvt::test

#endif  // KVARTET_TESTS_UNIT_TRANSFORM_TRANSFORM_FIXTURE_H_
