// transform_encode, transform_decode, fixed_time, dense_encode_time, dense_decode_time: the codecs transform
// and dense at ratio 16 against their matrix products alone, done by OpenBLAS sgemm on the same shapes, one
// thread.
#include <cblas.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/bench.h"
#include "bench/bench_transform_kv.h"

namespace kvt::bench {
namespace {

constexpr int kRounds = 5;
constexpr size_t kTile = 256;

// Rows' width and the components that a codec keeps at the profile's ratio_min, of each group.
struct Shape {
  size_t width, components;
};
std::vector<Shape> ShapesOf(const std::vector<uint8_t>& profile, const char* kept) {
  std::string text(1 << 16, '\0');
  size_t needed = 0;
  Check(kvt_profile_describe(profile.data(), profile.size(), text.data(), text.size(), &needed),
        "kvt_profile_describe");
  std::vector<Shape> shapes;
  const auto description = nlohmann::json::parse(text.substr(0, needed));
  for (const auto& group : description.at("groups"))
    shapes.push_back({group["width"].get<size_t>(), group[kept].get<size_t>()});
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

Bar MakeBar(const char* name, double wanted, const Pair& pair, const Products& products) {
  Bar bar;
  bar.name = name;
  bar.value = 1 / pair.peer_by_ours.median;
  bar.unit = "x";
  bar.op = "<=";
  bar.bar = wanted;
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

// Encoding and decoding by a codec against its products.
struct Ways {
  Pair encode, decode;
  Products products;
};
Ways Measure(const char* name, const char* kept) {
  TransformKv kv;
  const std::vector<uint8_t>& profile = CalibrateProfile(kv);
  TransformCodec codec(kv, name, profile);
  kv.Fill(7);
  Products products(ShapesOf(profile, kept));
  Pair encode = Interleave(
      kRounds, [&] { return codec.Encode(); }, [&] { return products.Run(true); });
  Pair decode = Interleave(
      kRounds, [&] { return codec.Decode(); }, [&] { return products.Run(false); });
  return {encode, decode, std::move(products)};
}

std::vector<Bar> TransformBars() {
  const Ways fixed = Measure("transform", "fixed");
  return {MakeBar("transform_encode", 1.5, fixed.encode, fixed.products),
          MakeBar("transform_decode", 1.5, fixed.decode, fixed.products)};
}
KVT_BENCH(transform, TransformBars);

std::vector<Bar> TransformTimes() {
  const Ways fixed = Measure("transform", "fixed"), dense = Measure("dense", "dense");
  const bool encode_is_worse = fixed.encode.peer_by_ours.median < fixed.decode.peer_by_ours.median;
  return {MakeBar("fixed_time", 1.3, encode_is_worse ? fixed.encode : fixed.decode, fixed.products),
          MakeBar("dense_encode_time", 3, dense.encode, dense.products),
          MakeBar("dense_decode_time", 1.5, dense.decode, dense.products)};
}
KVT_BENCH(codec, TransformTimes);

}  // namespace
}  // namespace kvt::bench
