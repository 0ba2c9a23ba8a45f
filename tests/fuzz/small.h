// A small model, rows of it between guards, and codecs and calibrations of it: for the fuzz targets and their
// seeds.
#ifndef KVARTET_TESTS_FUZZ_SMALL_H_
#define KVARTET_TESTS_FUZZ_SMALL_H_

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "codec/transform/calibrator.h"
#include "common/convert.h"

namespace kvt::fuzz {

// What a target calls when something that must hold does not.
inline void Require(bool holds) {
  if (!holds) __builtin_trap();
}

// The codecs that are fuzzed; those with a ratio have a profile. Seeds name them by number: a new one comes
// last.
struct FuzzedCodec {
  const char* name;
  uint32_t ratio = 0;
};
inline constexpr FuzzedCodec kCodecs[] = {{"raw"},          {"int8"},       {"kivi2"},    {"kivi4"},
                                          {"transform", 8}, {"kivi8"},      {"fp8"},      {"fp8_e5m2"},
                                          {"rotated3"},     {"rotated4v2"}, {"lossless"}, {"nested_coarse"},
                                          {"nested_rest"},  {"cachegen"},   {"dense", 8}, {"kvtc", 8}};

inline std::shared_ptr<const Model> SmallModel() {
  kvt_model_options_t options = {};
  options.struct_size = sizeof options;
  options.layout = KVT_LAYOUT_KV;
  options.model_id = reinterpret_cast<const uint8_t*>("fuzz");
  options.model_id_len = 4;
  options.layers = 2;
  options.kv_heads = 1;
  options.k_dim = 8;
  options.v_dim = 4;
  options.element = KVT_ELEMENT_F16;
  options.rope_style = KVT_ROPE_INTERLEAVED;
  options.rope_dims = 8;
  options.rope_base = 10000;
  options.rope_magnitude = 1;
  return *Model::Create(options);
}

// Rows of SmallModel in host memory, each layer's and stream's between guards.
class Rows {
 public:
  explicit Rows(std::shared_ptr<const Model> model, uint64_t tokens)
      : model_(std::move(model)), tokens_(tokens), blocks_(size_t{2} * model_->layers()) {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].assign(tokens_ * RowBytes(i % 2) + 2 * kGuard, kGuardByte);
      bases_.push_back(blocks_[i].data() + kGuard);
    }
  }

  void Fill() {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const size_t values = tokens_ * RowBytes(i % 2) / 2;
      for (size_t v = 0; v < values; ++v) {
        const auto at = static_cast<float>(v);
        const uint16_t half = kernels::F32ToF16(std::sin(0.7f * at) + 3 * std::cos(0.013f * at));
        std::memcpy(blocks_[i].data() + kGuard + 2 * v, &half, 2);
      }
    }
  }

  View view() {
    kvt_view_t view = {};
    view.struct_size = sizeof view;
    view.memory = KVT_MEMORY_HOST;
    view.element = KVT_ELEMENT_F16;
    view.layer_end = model_->layers();
    view.head_end = 1;
    view.bases = bases_.data();
    view.base_count = bases_.size();
    for (uint32_t stream = 0; stream < 2; ++stream) {
      view.element_stride[stream] = 2;
      view.head_stride[stream] = view.token_stride[stream] = static_cast<int64_t>(RowBytes(stream));
    }
    view.tokens = tokens_;
    return *View::Check(*model_, &view);
  }

  void RequireGuards() const {
    for (const auto& block : blocks_) {
      for (size_t i = 0; i < kGuard; ++i)
        Require(block[i] == kGuardByte && block[block.size() - 1 - i] == kGuardByte);
    }
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr uint8_t kGuardByte = 0xa5;

  size_t RowBytes(size_t stream) const { return 2 * model_->head_dim(static_cast<uint32_t>(stream)); }

  std::shared_ptr<const Model> model_;
  uint64_t tokens_;
  std::vector<std::vector<uint8_t>> blocks_;
  std::vector<void*> bases_;
};

// All tokens of a view, the first and the last as they are.
inline FrameSpec SpecOf(const View& view) {
  kvt_frame_spec_t spec = {};
  spec.struct_size = sizeof spec;
  spec.token_count = view.tokens();
  spec.exempt_first = spec.exempt_last = 1;
  return *FrameSpec::Check(view, &spec);
}

inline StatusOr<std::shared_ptr<const Codec>> MakeCodec(std::shared_ptr<const Model> model,
                                                        absl::string_view name,
                                                        absl::string_view profile = "", uint32_t ratio = 0) {
  kvt_codec_options_t options = {};
  options.struct_size = sizeof options;
  options.name = name.data();
  options.name_len = name.size();
  options.group_tokens = 16;
  options.group_channels = 8;
  options.profile = AsBytes(profile).data();
  options.profile_len = profile.size();
  options.ratio = ratio;
  return Codec::Create(std::move(model), options);
}

inline std::shared_ptr<const Codec> MakeCodec(const std::shared_ptr<const Model>& model,
                                              const FuzzedCodec& codec, absl::string_view profile) {
  return *MakeCodec(model, codec.name, codec.ratio == 0 ? "" : profile, codec.ratio);
}

inline std::vector<uint8_t> Encode(const Codec& codec, const View& view) {
  std::vector<uint8_t> frame(*codec.Bound(view, SpecOf(view)));
  const auto report = codec.Encode(view, SpecOf(view), MutableBytes(frame));
  Require(report.ok());
  frame.resize(report->frame_bytes);
  return frame;
}

// A calibration that has seen one document, with a group for each layer.
inline std::shared_ptr<Calibrator> MakeCalibration(const std::shared_ptr<const Model>& model) {
  constexpr uint64_t kTokens = 72;
  CalibrationOptions options;
  options.group_layers = 1;
  auto calibrator = *Calibrator::Create(model, options);
  Rows rows(model, kTokens);
  rows.Fill();
  Require(calibrator->Add(rows.view(), 0, kTokens).ok());
  return calibrator;
}

}  // namespace kvt::fuzz

#endif  // KVARTET_TESTS_FUZZ_SMALL_H_
