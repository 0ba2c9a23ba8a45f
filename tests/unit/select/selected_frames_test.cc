// From a choice to frames and back: tokens chosen for each layer and KV head, their rows behind a block
// table, a frame for each, and rows and positions out of it; nothing that takes them for consecutive tokens
// works.
#include <gmock/gmock.h>

#include <numeric>

#include "kvartet/codec.h"
#include "unit/codec/reseal.h"
#include "unit/select/select_fixture.h"

namespace kvt::test {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kTokens = 90, kFirst = 1000;
constexpr uint32_t kKept = 30;

class SelectedFramesTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    kvt_model_options_t options;
    kvt_model_options_init(&options, sizeof options);
    options.model_id = reinterpret_cast<const uint8_t*>("weights");
    options.model_id_len = 7;
    options.layers = scene_.model()->layers();
    options.kv_heads = scene_.model()->kv_heads();
    options.k_dim = scene_.model()->head_dim(0);
    options.v_dim = scene_.model()->head_dim(1);
    options.element = KVT_ELEMENT_F32;
    ASSERT_EQ(kvt_model_create(&options, &model_), KVT_OK);
    kvt_codec_options_t codec;
    kvt_codec_options_init(&codec, sizeof codec);
    codec.name = GetParam();
    codec.name_len = std::strlen(GetParam());
    ASSERT_EQ(kvt_codec_create(model_, &codec, &codec_), KVT_OK);
    kvt_frame_spec_init(&spec_, sizeof spec_);
    spec_.token_count = kKept;
    scene_.memory().description()->first_position = kFirst;
  }
  void TearDown() override {
    kvt_codec_destroy(codec_);
    kvt_model_destroy(model_);
  }

  // The tokens that stay, for each layer and KV head.
  std::vector<uint32_t> Choose() {
    kvt_select_options_t options;
    kvt_select_options_init(&options, sizeof options);
    options.budget = kKept;
    options.window = 5;
    size_t needed = 0;
    std::vector<uint32_t> tokens(4 * kKept);
    EXPECT_EQ(kvt_select_tokens(model_, scene_.memory().description(), &scene_.attention(), &options,
                                tokens.data(), tokens.size(), &needed),
              KVT_OK);
    return tokens;
  }
  // A view of some tokens of one layer and head, without moving a row.
  kvt_view_t ViewOf(Memory* memory, uint32_t layer, uint32_t head, const std::vector<int32_t>& pages) {
    kvt_view_t view = *memory->description();
    for (uint32_t stream = 0; stream < 2; ++stream) {
      bases_[stream] = memory->At(layer, stream, 0, head, 0);
      view.page_stride[stream] = view.token_stride[stream];
    }
    view.bases = bases_;
    view.base_count = 2;
    view.layer_begin = layer;
    view.layer_end = layer + 1;
    view.head_begin = head;
    view.head_end = head + 1;
    view.block_table = pages.data();
    view.block_table_len = pages.size();
    view.page_tokens = 1;
    view.tokens = pages.size();
    return view;
  }
  std::vector<uint8_t> Encode(const kvt_view_t& view) {
    size_t needed = 0;
    EXPECT_EQ(kvt_codec_encode(codec_, &view, &spec_, nullptr, 0, &needed, nullptr), KVT_OK);
    std::vector<uint8_t> frame(needed);
    EXPECT_EQ(kvt_codec_encode(codec_, &view, &spec_, frame.data(), frame.size(), &needed, nullptr), KVT_OK);
    frame.resize(needed);
    return frame;
  }
  kvt_status_t Decode(const std::vector<uint8_t>& frame, const kvt_view_t& view) {
    return kvt_codec_decode(codec_, frame.data(), frame.size(), &spec_, &view, nullptr);
  }
  static std::string LastError() {
    char message[KVT_ERROR_TEXT_MAX + 1] = "";
    kvt_last_error(message, KVT_ERROR_TEXT_MAX, nullptr);
    return message;
  }
  static std::vector<uint64_t> PositionsOf(const std::vector<uint8_t>& frame) {
    size_t needed = 0;
    EXPECT_EQ(kvt_frame_positions(frame.data(), frame.size(), nullptr, 0, &needed), KVT_OK);
    std::vector<uint64_t> positions(needed);
    EXPECT_EQ(kvt_frame_positions(frame.data(), frame.size(), positions.data(), needed - 1, &needed),
              KVT_ERR_BUFFER_TOO_SMALL);
    EXPECT_EQ(kvt_frame_positions(frame.data(), frame.size(), positions.data(), needed, nullptr), KVT_OK);
    return positions;
  }

  Scene scene_{kTokens, 4, Layout::kDense};
  kvt_model_t model_ = 0;
  kvt_codec_t codec_ = 0;
  kvt_frame_spec_t spec_ = {};
  void* bases_[2] = {};
};

TEST_P(SelectedFramesTest, RowsAndPositionsComeBack) {
  const std::vector<uint32_t> tokens = Choose();
  for (uint32_t choice = 0; choice < 4; ++choice) {
    const uint32_t layer = choice / 2, head = choice % 2;
    const std::vector<int32_t> kept(tokens.begin() + choice * kKept, tokens.begin() + (choice + 1) * kKept);
    std::vector<uint64_t> positions;
    for (const int32_t token : kept) positions.push_back(kFirst + static_cast<uint64_t>(token));
    const kvt_view_t view = ViewOf(&scene_.memory(), layer, head, kept);
    spec_.positions = positions.data();
    const std::vector<uint8_t> frame = Encode(view);
    EXPECT_EQ(kvt_frame_verify(frame.data(), frame.size()), KVT_OK);
    EXPECT_EQ(PositionsOf(frame), positions);

    // Into memory that holds selected tokens only.
    Memory dense(scene_.model(), Layout::kDense, KVT_ELEMENT_F32, kKept);
    std::vector<int32_t> all(kKept);
    std::iota(all.begin(), all.end(), 0);
    const kvt_view_t out = ViewOf(&dense, layer, head, all);
    ASSERT_EQ(Decode(frame, out), KVT_OK) << LastError();
    // The rows are those of a frame of consecutive tokens with the same rows.
    Memory plain(scene_.model(), Layout::kDense, KVT_ELEMENT_F32, kKept, kFirst);
    spec_.positions = nullptr;
    const std::vector<uint8_t> same = Encode(ViewOf(&scene_.memory(), layer, head, kept));
    EXPECT_LT(same.size(), frame.size());
    ASSERT_EQ(Decode(same, ViewOf(&plain, layer, head, all)), KVT_OK);
    for (uint32_t stream = 0; stream < 2; ++stream) {
      for (uint32_t t = 0; t < kKept; ++t) {
        for (uint32_t e = 0; e < scene_.model()->head_dim(stream); ++e) {
          ASSERT_EQ(dense.Get(layer, stream, t, head, e), plain.Get(layer, stream, t, head, e));
          if (std::string(GetParam()) == "int8") continue;
          ASSERT_EQ(dense.Get(layer, stream, t, head, e),
                    scene_.memory().Get(layer, stream, static_cast<uint32_t>(kept[t]), head, e));
        }
      }
    }
  }
}

TEST_P(SelectedFramesTest, OtherPositionsAreAMismatch) {
  std::vector<int32_t> kept(kKept);
  std::iota(kept.begin(), kept.end(), 0);
  std::vector<uint64_t> positions(kKept);
  for (uint32_t t = 0; t < kKept; ++t) positions[t] = kFirst + 3 * t;
  const kvt_view_t view = ViewOf(&scene_.memory(), 0, 0, kept);
  spec_.positions = positions.data();
  const std::vector<uint8_t> frame = Encode(view);
  ASSERT_EQ(Decode(frame, view), KVT_OK);
  spec_.positions = nullptr;
  EXPECT_EQ(Decode(frame, view), KVT_ERR_MISMATCH);
  EXPECT_THAT(LastError(), HasSubstr("position of token 1 is 1003, expected 1001"));
  spec_.positions = positions.data();
  --positions[20];
  EXPECT_EQ(Decode(frame, view), KVT_ERR_MISMATCH);
  EXPECT_THAT(LastError(), HasSubstr("position of token 20 is 1060, expected 1059"));
  ++positions[20];
  for (uint64_t& position : positions) ++position;
  EXPECT_EQ(Decode(frame, view), KVT_ERR_MISMATCH);
  EXPECT_THAT(LastError(), HasSubstr("first position is 1000, expected 1001"));

  // Consecutive positions are the same as none, wherever they begin.
  std::iota(positions.begin(), positions.end(), kFirst);
  const std::vector<uint8_t> consecutive = Encode(view);
  spec_.positions = nullptr;
  EXPECT_EQ(Encode(view), consecutive);
  EXPECT_EQ(PositionsOf(consecutive), positions);
  EXPECT_EQ(Decode(consecutive, view), KVT_OK);
  spec_.positions = positions.data();
  std::iota(positions.begin(), positions.end(), 5);
  EXPECT_EQ(Decode(consecutive, view), KVT_ERR_MISMATCH);
  const std::vector<uint8_t> moved = Encode(view);
  EXPECT_EQ(Decode(moved, view), KVT_OK);
  spec_.positions = nullptr;
  EXPECT_EQ(Decode(moved, view), KVT_ERR_MISMATCH);
}

TEST_P(SelectedFramesTest, RefusesPositionsByName) {
  std::vector<int32_t> kept(kKept);
  std::iota(kept.begin(), kept.end(), 0);
  const kvt_view_t view = ViewOf(&scene_.memory(), 0, 0, kept);
  const auto refuse = [&](size_t at, uint64_t value, const char* text) {
    std::vector<uint64_t> positions(kKept);
    std::iota(positions.begin(), positions.end(), 7);
    positions[at] = value;
    spec_.positions = positions.data();
    size_t needed = 0;
    EXPECT_EQ(kvt_codec_encode(codec_, &view, &spec_, nullptr, 0, &needed, nullptr),
              KVT_ERR_INVALID_ARGUMENT);
    EXPECT_THAT(LastError(), HasSubstr(text));
  };
  refuse(4, 10, "positions[4] is 10, expected more than the 10 before it");
  refuse(29, UINT64_MAX, "positions[29] is 18446744073709551615");
  refuse(29, 7 + (uint64_t{1} << 32), "positions[29] is 4294967303");
  refuse(0, UINT64_MAX, "positions[0] is 18446744073709551615");
}

TEST_P(SelectedFramesTest, HostileHeadersAreRefused) {
  std::vector<int32_t> kept(kKept);
  std::iota(kept.begin(), kept.end(), 0);
  std::vector<uint64_t> positions(kKept);
  for (uint32_t t = 0; t < kKept; ++t) positions[t] = kFirst + 2 * t;
  spec_.positions = positions.data();
  const std::vector<uint8_t> frame = Encode(ViewOf(&scene_.memory(), 0, 0, kept));
  const auto header = ParseFrame(Bytes(frame));
  ASSERT_TRUE(header.ok());
  const auto refuse = [&](auto change, const char* text) {
    FrameHeader changed = *header;
    change(&changed);
    const auto read = ParseFrame(Bytes(WithHeader(frame, changed, header->payload_offset)));
    EXPECT_EQ(CodeOf(read.status()), KVT_ERR_CORRUPT);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(text));
  };
  refuse([](auto* h) { h->position_offsets.pop_back(); }, "29 position offsets for 30 tokens");
  refuse([](auto* h) { h->position_offsets[0] = 1; }, "position offset 0 is 1");
  refuse([](auto* h) { h->position_offsets[9] = 16; }, "position offset 9 is 16");
  refuse([](auto* h) { std::iota(h->position_offsets.begin(), h->position_offsets.end(), 0); },
         "without a gap");
  refuse([](auto* h) { h->first_position = UINT64_MAX - 40; }, "position offset 58 overflow");
  std::vector<uint8_t> unflagged = frame;
  unflagged[12] = 0;
  Reseal(unflagged);
  EXPECT_THAT(std::string(ParseFrame(Bytes(unflagged)).status().message()),
              HasSubstr("the prefix says consecutive tokens, the header has 30 position offsets"));
}

INSTANTIATE_TEST_SUITE_P(All, SelectedFramesTest, testing::Values("raw", "lossless", "int8"));

}  // namespace
}  // namespace kvt::test
