#include "kvartet/stream_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "kvartet/profile.h"
#include "kvartet/stream_codec.h"
#include "kvartet/worker.h"

namespace kvt::cli {

bool operator==(const LayerRange& a, const LayerRange& b) { return a.begin == b.begin && a.end == b.end; }
void PrintTo(const LayerRange& range, std::ostream* out) {
  *out << "[" << range.begin << ", " << range.end << ")";
}

namespace {

using ::testing::ElementsAre;

constexpr uint32_t kLayers = 6;

std::vector<LayerRange> Groups(uint32_t layers, uint32_t size) {
  std::vector<LayerRange> groups;
  for (uint32_t begin = 0; begin < layers; begin += size)
    groups.push_back({begin, std::min(begin + size, layers)});
  return groups;
}

TEST(CutLayers, TakesWholeGroups) {
  EXPECT_THAT(CutLayers(30, Groups(30, 10)),
              ElementsAre(LayerRange{0, 10}, LayerRange{10, 20}, LayerRange{20, 30}));
  EXPECT_THAT(CutLayers(30, Groups(30, 3)),
              ElementsAre(LayerRange{0, 6}, LayerRange{6, 15}, LayerRange{15, 21}, LayerRange{21, 30}));
  EXPECT_THAT(CutLayers(30, Groups(30, 16)), ElementsAre(LayerRange{0, 16}, LayerRange{16, 30}));
  EXPECT_THAT(CutLayers(30, Groups(30, 30)), ElementsAre(LayerRange{0, 30}));
}

TEST(CutLayers, CutsAnywhereWithoutGroups) {
  EXPECT_THAT(CutLayers(8, {}),
              ElementsAre(LayerRange{0, 2}, LayerRange{2, 4}, LayerRange{4, 6}, LayerRange{6, 8}));
  EXPECT_THAT(CutLayers(2, {}), ElementsAre(LayerRange{0, 1}, LayerRange{1, 2}));
}

TEST(CutLayers, NeverLeavesLayersOut) {
  // The codec then says that these are not whole groups.
  EXPECT_THAT(CutLayers(30, Groups(20, 10)), ElementsAre(LayerRange{0, 10}, LayerRange{10, 30}));
}

class CutStreams : public ::testing::TestWithParam<std::tuple<int32_t, uint32_t, uint32_t>> {};

TEST_P(CutStreams, HoldEachTokenOfEachLayerOnce) {
  const auto [tokens, sinks, window] = GetParam();
  const std::vector<Part> parts = Parts(tokens);
  const std::vector<Piece> pieces = CutStream(parts, CutLayers(kLayers, {}), sinks, window);
  std::map<std::pair<int32_t, uint32_t>, int> seen;
  for (const Piece& piece : pieces) {
    ASSERT_LT(piece.token_begin, piece.token_end);
    EXPECT_GE(piece.token_begin, parts[piece.part].begin);
    EXPECT_LE(piece.token_end, parts[piece.part].end);
    EXPECT_EQ(piece.exempt_first, piece.token_begin == 0 && !piece.kept_raw ? sinks : 0u);
    EXPECT_EQ(piece.kept_raw, piece.token_end > tokens - static_cast<int32_t>(window));
    for (int32_t token = piece.token_begin; token < piece.token_end; ++token)
      for (uint32_t layer = piece.layers.begin; layer < piece.layers.end; ++layer) ++seen[{token, layer}];
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(tokens) * kLayers);
  for (const auto& [place, times] : seen) EXPECT_EQ(times, 1) << place.first << ", layer " << place.second;
}

TEST_P(CutStreams, CutTheLastPartOnly) {
  const auto [tokens, sinks, window] = GetParam();
  const std::vector<Part> parts = Parts(tokens);
  const std::vector<Piece> pieces = CutStream(parts, CutLayers(kLayers, {}), sinks, window);
  size_t piece = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    ASSERT_LT(piece, pieces.size());
    EXPECT_EQ(pieces[piece].part, part);
    if (part + 1 == parts.size()) {
      EXPECT_EQ(EndOfPart(pieces, piece), pieces.size());
      EXPECT_EQ(pieces[piece].kept_raw, window > 0) << "the window goes ahead";
    } else {
      EXPECT_EQ(EndOfPart(pieces, piece), piece + 1);
    }
    piece = EndOfPart(pieces, piece);
  }
  EXPECT_EQ(piece, pieces.size());
}

INSTANTIATE_TEST_SUITE_P(Prompts, CutStreams,
                         ::testing::Combine(::testing::Values(40, 64, 80, 512, 530, 687, 2223),
                                            ::testing::Values(0u, 4u), ::testing::Values(0u, 16u)));

TEST(CutStream, KeepsAPartRawThatIsNoLongerThanTheWindow) {
  const std::vector<Piece> pieces = CutStream(Parts(600), CutLayers(kLayers, {}), 4, 1000);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_FALSE(pieces[0].kept_raw);
  EXPECT_TRUE(pieces[1].kept_raw);
  EXPECT_EQ(pieces[1].token_begin, 512);
}

class StreamPieces : public ::testing::Test {
 protected:
  static constexpr int32_t kTokens = 150;
  static constexpr engine::KvGeometry kGeometry{
      .layers = kLayers, .kv_heads = 2, .head_dim_k = 16, .head_dim_v = 16};

  StreamPieces() : blob_(*engine::KvBlob::Create(kGeometry, 0, kTokens)) {
    std::iota(geometry_.weights_sha256.begin(), geometry_.weights_sha256.end(), uint8_t{1});
    geometry_.kv = kGeometry;
    model_ = MakeModel(geometry_);
    std::mt19937 random(7);
    const BlobView view(blob_);
    // Any f16 from 1 to 2.
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      for (const engine::RowView& rows :
           {blob_.K(static_cast<int32_t>(layer)), blob_.V(static_cast<int32_t>(layer))}) {
        for (int64_t i = 0; i < kTokens * rows.token_stride / 2; ++i) {
          const auto half = static_cast<uint16_t>(0x3c00 + random() % 1024);
          rows.base[2 * i] = static_cast<uint8_t>(half);
          rows.base[2 * i + 1] = static_cast<uint8_t>(half >> 8);
        }
      }
    }
  }

  StreamName Name() const {
    std::vector<int32_t> tokens(kTokens);
    std::iota(tokens.begin(), tokens.end(), 0);
    return NameStream(model_, tokens, "test");
  }

  // Every other piece by a second thread, as P and D do.
  engine::KvBlob Moved(const Codec& codec, const Codec& raw, const std::vector<Piece>& pieces) const {
    const StreamName name = Name();
    engine::KvBlob moved = *engine::KvBlob::Create(kGeometry, 0, kTokens);
    std::vector<std::vector<uint8_t>> frames;
    PartEncoder encoder;
    for (const Piece& piece : pieces) {
      kvt_codec_report_t report;
      const auto frame = encoder.Encode(piece.kept_raw ? raw : codec, name, blob_, piece, &report);
      frames.emplace_back(frame.begin(), frame.end());
    }
    Worker helper;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto decode = [&, i] {
        kvt_codec_report_t report;
        DecodePiece(codec, name, frames[i], pieces[i], moved, &report);
      };
      if (i % 2 == 0) {
        helper.Run(decode);
      } else {
        decode();
      }
    }
    helper.Wait();
    return moved;
  }

  static std::vector<uint8_t> Bytes(const engine::KvBlob& blob) {
    return {blob.bytes().begin(), blob.bytes().end()};
  }

  engine::Geometry geometry_;
  Model model_;
  engine::KvBlob blob_;
};

TEST_F(StreamPieces, OfRawFramesGiveEveryBit) {
  const Codec raw = MakeCodec(model_, "raw");
  const std::vector<Piece> pieces = CutStream(Parts(kTokens), CutLayers(kLayers, {}), 0, 0);
  EXPECT_EQ(pieces.size(), 8u);
  EXPECT_TRUE(Bytes(Moved(raw, raw, pieces)) == Bytes(blob_));
}

TEST_F(StreamPieces, OfALossyCodecGiveWhatOneFrameGives) {
  const Codec raw = MakeCodec(model_, "raw");
  for (const char* codec_name : {"int8", "kivi4"}) {
    const Codec codec = MakeCodec(model_, codec_name);
    const std::vector<Piece> pieces = CutStream(Parts(kTokens), CutLayers(kLayers, {}), 0, 16);
    EXPECT_EQ(pieces.size(), 9u);
    engine::KvBlob whole = *engine::KvBlob::Create(kGeometry, 0, kTokens);
    PartEncoder encoder;
    kvt_codec_report_t report;
    DecodePart(codec, Name(), encoder.Encode(codec, Name(), blob_, 0, 16, &report), &whole, &report);
    EXPECT_TRUE(Bytes(Moved(codec, raw, pieces)) == Bytes(whole)) << codec_name;
    EXPECT_FALSE(Bytes(whole) == Bytes(blob_)) << codec_name;
  }
}

TEST_F(StreamPieces, FollowTheGroupsOfAProfile) {
  kvt_calibration_options_t options;
  kvt_calibration_options_init(&options, sizeof options);
  options.group_layers = 4;
  Calibration calibration;
  Check(kvt_calibration_create(model_.get(), &options, calibration.out()), "kvt_calibration_create");
  const BlobView view(blob_);
  Check(kvt_calibration_add(calibration.get(), view.get(), 0, kTokens, nullptr), "kvt_calibration_add");
  std::vector<uint8_t> profile;
  CopyBytes([&](uint8_t* buf, size_t cap,
                size_t* needed) { return kvt_calibration_finish(calibration.get(), buf, cap, needed); },
            "kvt_calibration_finish", &profile);
  EXPECT_THAT(ProfileGroups(profile), ElementsAre(LayerRange{0, 4}, LayerRange{4, 6}));

  const std::vector<LayerRange> layers = CutLayers(kLayers, ProfileGroups(profile));
  const Codec raw = MakeCodec(model_, "raw"), codec = MakeTransform(model_, profile, 4);
  const engine::KvBlob moved = Moved(codec, raw, CutStream(Parts(kTokens), layers, 4, 16));
  // What is kept raw came unchanged.
  for (int32_t layer = 0; layer < static_cast<int32_t>(kLayers); ++layer) {
    const engine::RowView there = moved.K(layer), here = blob_.K(layer);
    const auto row = static_cast<size_t>(here.token_stride);
    EXPECT_EQ(std::memcmp(there.base, here.base, 4 * row), 0);
    EXPECT_EQ(std::memcmp(there.base + (kTokens - 16) * row, here.base + (kTokens - 16) * row, 16 * row), 0);
  }
}

}  // namespace
}  // namespace kvt::cli
