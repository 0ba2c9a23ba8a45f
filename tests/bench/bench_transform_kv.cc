#include "bench/bench_transform_kv.h"

#include <cmath>
#include <random>

#include "bench/bench.h"

namespace kvt::bench {

TransformKv::TransformKv() : halves_(kLayers * 2 * kTokens * kRow) {
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.model_id = reinterpret_cast<const uint8_t*>("bench");
  options.model_id_len = 5;
  options.layers = kLayers;
  options.kv_heads = kHeads;
  options.k_dim = options.v_dim = options.rope_dims = kDim;
  options.rope_style = KVT_ROPE_INTERLEAVED;
  options.rope_base = 100000;
  Check(kvt_model_create(&options, &model_), "kvt_model_create");
  kvt_view_init(&view_, sizeof view_);
  view_.layer_end = kLayers;
  view_.head_end = kHeads;
  view_.tokens = kTokens;
  for (int stream = 0; stream < 2; ++stream) {
    view_.element_stride[stream] = 2;
    view_.head_stride[stream] = kDim * 2;
    view_.token_stride[stream] = kRow * 2;
  }
  for (uint32_t i = 0; i < kLayers * 2; ++i) bases_.push_back(halves_.data() + i * kTokens * kRow);
  view_.bases = bases_.data();
  view_.base_count = bases_.size();
  kvt_frame_spec_init(&spec_, sizeof spec_);
  spec_.token_count = kTokens;
  spec_.key[0] = 1;
}

void TransformKv::Fill(uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  for (size_t i = 0; i < halves_.size(); ++i) {
    const size_t channel = i / (kTokens * kRow) / 2 % 10 * kRow + i % kRow / 2 * 2;
    const float size = std::exp(-static_cast<float>(channel * 377 % 1920) / 400.0f);
    halves_[i] = static_cast<_Float16>(normal(random) * size);
  }
}

namespace {

std::vector<uint8_t> Calibrate(TransformKv& kv) {
  kvt_calibration_options_t options;
  kvt_calibration_options_init(&options, sizeof options);
  options.ratio_min = kRatio;
  kvt_calibration_t calibration = 0;
  Check(kvt_calibration_create(kv.model(), &options, &calibration), "kvt_calibration_create");
  for (uint32_t document = 0; document < 2; ++document) {
    kv.Fill(document);
    Check(kvt_calibration_add(calibration, kv.view(), 0, kTokens, nullptr), "kvt_calibration_add");
  }
  size_t needed = 0;
  Check(kvt_calibration_finish(calibration, nullptr, 0, &needed), "kvt_calibration_finish");
  std::vector<uint8_t> profile(needed);
  Check(kvt_calibration_finish(calibration, profile.data(), profile.size(), &needed),
        "kvt_calibration_finish");
  kvt_calibration_destroy(calibration);
  return profile;
}

}  // namespace

const std::vector<uint8_t>& CalibrateProfile(TransformKv& kv) {
  static const std::vector<uint8_t> profile = Calibrate(kv);
  return profile;
}

TransformCodec::TransformCodec(const TransformKv& kv, const std::string& name,
                               const std::vector<uint8_t>& profile, uint64_t token_begin,
                               uint64_t token_count, uint32_t ratio)
    : kv_(kv), spec_(*kv.spec()) {
  spec_.token_begin = token_begin;
  spec_.token_count = token_count;
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  options.name = name.data();
  options.name_len = name.size();
  options.profile = profile.empty() ? nullptr : profile.data();
  options.profile_len = profile.size();
  options.ratio = ratio;
  Check(kvt_codec_create(kv.model(), &options, &codec_), "kvt_codec_create");
  uint64_t bound = 0;
  Check(kvt_codec_bound(codec_, kv.view(), &spec_, &bound), "kvt_codec_bound");
  frame_.resize(bound);
}

double TransformCodec::Encode() {
  return Seconds([&] {
    Check(kvt_codec_encode(codec_, kv_.view(), &spec_, frame_.data(), frame_.size(), &frame_bytes_, nullptr),
          "kvt_codec_encode");
  });
}

double TransformCodec::Decode(const kvt_view_t* into) {
  return Seconds([&] {
    Check(kvt_codec_decode(codec_, frame_.data(), frame_bytes_, &spec_, into, nullptr), "kvt_codec_decode");
  });
}

}  // namespace kvt::bench
