// transform_encode, transform_decode: the transform codec at ratio 16 against its matrix products alone, done
// by OpenBLAS sgemm on the same shapes, one thread.
#include <cblas.h>
#include <kvartet/experimental.h>
#include <kvartet/kvartet.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/bench.h"

namespace kvt::bench {
namespace {

constexpr int kRounds = 5;
constexpr uint32_t kLayers = 30, kHeads = 3, kDim = 64, kRatio = 16;
constexpr uint64_t kTokens = 2048;
constexpr size_t kTile = 256, kRow = size_t{kHeads} * kDim;

// f16 KV of SmolLM2-135M's shape: normal values, whose size falls over the channels of all layers, equal in
// the pairs that RoPE turns.
class Kv {
 public:
  Kv() : halves_(kLayers * 2 * kTokens * kRow) {
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
  }
  ~Kv() { kvt_model_destroy(model_); }
  Kv(const Kv&) = delete;
  Kv& operator=(const Kv&) = delete;

  void Fill(uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 1);
    for (size_t i = 0; i < halves_.size(); ++i) {
      const size_t channel = i / (kTokens * kRow) / 2 % 10 * kRow + i % kRow / 2 * 2;
      const float size = std::exp(-static_cast<float>(channel * 377 % 1920) / 400.0f);
      halves_[i] = static_cast<_Float16>(normal(random) * size);
    }
  }

  kvt_model_t model() const { return model_; }
  const kvt_view_t* view() const { return &view_; }
  const kvt_frame_spec_t* spec() const { return &spec_; }

 private:
  std::vector<_Float16> halves_;
  std::vector<void*> bases_;
  kvt_model_t model_ = 0;
  kvt_view_t view_;
  kvt_frame_spec_t spec_;
};

std::vector<uint8_t> Calibrate(Kv& kv) {
  kvt_calibration_options_t options;
  kvt_calibration_options_init(&options, sizeof options);
  options.ratio_min = kRatio;
  kvt_calibration_t calibration = 0;
  Check(kvt_calibration_create(kv.model(), &options, &calibration), "kvt_calibration_create");
  for (uint32_t document = 0; document < 2; ++document) {
    kv.Fill(document);
    Check(kvt_calibration_add(calibration, kv.view(), 0, kTokens), "kvt_calibration_add");
  }
  size_t needed = 0;
  Check(kvt_calibration_finish(calibration, nullptr, 0, &needed), "kvt_calibration_finish");
  std::vector<uint8_t> profile(needed);
  Check(kvt_calibration_finish(calibration, profile.data(), profile.size(), &needed),
        "kvt_calibration_finish");
  kvt_calibration_destroy(calibration);
  return profile;
}

// Rows' width and kept components of each group.
struct Shape {
  size_t width, components;
};
std::vector<Shape> ShapesOf(const std::vector<uint8_t>& profile) {
  std::string text(1 << 16, '\0');
  size_t needed = 0;
  Check(kvt_profile_describe(profile.data(), profile.size(), text.data(), text.size(), &needed),
        "kvt_profile_describe");
  std::vector<Shape> shapes;
  const auto description = nlohmann::json::parse(text.substr(0, needed));
  for (const auto& group : description.at("groups"))
    shapes.push_back({group["width"].get<size_t>(), group["components"].get<size_t>()});
  return shapes;
}

// The products of one direction, and nothing else.
class Products {
 public:
  explicit Products(std::vector<Shape> shapes) : shapes_(std::move(shapes)) {
    for (const Shape& shape : shapes_) {
      bases_.emplace_back(shape.width * shape.components, 0.01f);
      rows_.resize(std::max(rows_.size(), kTile * shape.width), 1.0f);
      values_.resize(std::max(values_.size(), kTile * shape.components), 1.0f);
    }
  }
  double Run(bool forward) {
    return Seconds([&] {
      for (size_t g = 0; g < shapes_.size(); ++g) {
        const int width = static_cast<int>(shapes_[g].width), kept = static_cast<int>(shapes_[g].components);
        const int tile = static_cast<int>(kTile);
        for (uint64_t token = 0; token < kTokens; token += kTile) {
          if (forward) {
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, kept, tile, width, 1, bases_[g].data(),
                        width, rows_.data(), width, 0, values_.data(), tile);
          } else {
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, tile, width, kept, 1, values_.data(), tile,
                        bases_[g].data(), width, 0, rows_.data(), width);
          }
        }
      }
    });
  }
  double Flops() const {
    double flops = 0;
    for (const Shape& shape : shapes_)
      flops += 2.0 * static_cast<double>(kTokens) * static_cast<double>(shape.width * shape.components);
    return flops;
  }

 private:
  std::vector<Shape> shapes_;
  std::vector<std::vector<float>> bases_;
  std::vector<float> rows_, values_;
};

Bar MakeBar(const char* name, const Pair& pair, const Products& products) {
  Bar bar;
  bar.name = name;
  bar.value = 1 / pair.peer_by_ours.median;
  bar.unit = "x";
  bar.op = "<=";
  bar.bar = 1.5;
  bar.peer = Peer{"its products by sgemm (s)", pair.peer.median};
  bar.rounds = kRounds;
  bar.spread = pair.peer_by_ours.spread;
  char note[160];
  std::snprintf(note, sizeof note, "%.0f us a token; sgemm at %.1f GFLOP/s, %.1f MFLOP a token",
                pair.ours.median / kTokens * 1e6, products.Flops() / pair.peer.median * 1e-9,
                products.Flops() / kTokens * 1e-6);
  bar.note = note;
  return bar;
}

std::vector<Bar> TransformBars() {
  Kv kv;
  const std::vector<uint8_t> profile = Calibrate(kv);
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  options.name = "transform";
  options.name_len = 9;
  options.profile = profile.data();
  options.profile_len = profile.size();
  options.ratio = kRatio;
  kvt_codec_t codec = 0;
  Check(kvt_codec_create(kv.model(), &options, &codec), "kvt_codec_create");
  kv.Fill(7);
  uint64_t bound = 0;
  Check(kvt_codec_bound(codec, kv.view(), kv.spec(), &bound), "kvt_codec_bound");
  std::vector<uint8_t> frame(bound);
  size_t needed = 0;
  Products products(ShapesOf(profile));
  const auto encode = [&] {
    return Seconds([&] {
      Check(kvt_codec_encode(codec, kv.view(), kv.spec(), frame.data(), frame.size(), &needed, nullptr),
            "kvt_codec_encode");
    });
  };
  const auto decode = [&] {
    return Seconds([&] {
      Check(kvt_codec_decode(codec, frame.data(), needed, kv.spec(), kv.view(), nullptr), "kvt_codec_decode");
    });
  };
  std::vector<Bar> bars;
  bars.push_back(
      MakeBar("transform_encode", Interleave(kRounds, encode, [&] { return products.Run(true); }), products));
  bars.push_back(MakeBar("transform_decode", Interleave(kRounds, decode, [&] { return products.Run(false); }),
                         products));
  kvt_codec_destroy(codec);
  return bars;
}

KVT_BENCH(transform, TransformBars);

}  // namespace
}  // namespace kvt::bench
