#include "engine/kv_blob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace kvt::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr KvGeometry kGeometry{.layers = 3, .kv_heads = 2, .head_dim_k = 4, .head_dim_v = 6};

// A blob whose every payload byte tells where it is.
KvBlob Filled(int32_t begin, int32_t tokens) {
  KvBlob blob = *KvBlob::Create(kGeometry, begin, tokens);
  for (int32_t layer = 0; layer < kGeometry.layers; ++layer) {
    for (const bool k : {true, false}) {
      const RowView rows = k ? blob.K(layer) : blob.V(layer);
      for (int32_t t = 0; t < tokens; ++t) {
        for (int64_t b = 0; b < rows.token_stride; ++b) {
          rows.base[t * rows.token_stride + b] =
              static_cast<uint8_t>(layer * 64 + (k ? 0 : 32) + (begin + t) * 7 + b);
        }
      }
    }
  }
  return blob;
}

std::vector<uint8_t> Bytes(const KvBlob& blob) { return {blob.bytes().begin(), blob.bytes().end()}; }

void Poke(std::vector<uint8_t>& bytes, size_t at, uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TEST(KvBlob, WritesTheLayoutOfTheEngine) {
  const KvBlob blob = Filled(5, 2);
  const std::vector<uint8_t> bytes = Bytes(blob);
  const size_t k_row = 2 * 2 * 4, v_row = 2 * 2 * 6;
  ASSERT_EQ(bytes.size(), 16 + 2 * 12 + 8 + 3 * (12 + 2 * k_row) + 3 * (12 + 2 * v_row));
  EXPECT_EQ(bytes.size(), BlobBytes(kGeometry, 2));
  const std::vector<uint8_t> head = {
      0xd8, 0x3c, 0x14, 0xaf, 0,  0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0,  // magic, sequence, streams, cells
      5,    0,    0,    0,    1,  0, 0, 0, 0, 0, 0, 0,              // cell 0
      6,    0,    0,    0,    1,  0, 0, 0, 0, 0, 0, 0,              // cell 1
      0,    0,    0,    0,    3,  0, 0, 0,                          // transposed V, layers
      1,    0,    0,    0,    16, 0, 0, 0, 0, 0, 0, 0};             // K of layer 0: f16, row bytes
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(head.size())), head);
  EXPECT_EQ(blob.K(0).base, blob.bytes().data() + head.size());
  EXPECT_EQ(blob.K(1).base, blob.K(0).base + 2 * k_row + 12);
  EXPECT_EQ(blob.V(0).base, blob.K(2).base + 2 * k_row + 12);
  EXPECT_EQ(blob.V(2).base + 2 * v_row, blob.bytes().data() + bytes.size());
}

TEST(KvBlob, ViewsDescribeRowsAndBasesAreInLayerOrder) {
  const KvBlob blob = Filled(0, 4);
  const RowView v = blob.V(1);
  EXPECT_EQ(v.token_stride, 24);
  EXPECT_EQ(v.head_stride, 12);
  EXPECT_EQ(v.element_stride, 2);
  EXPECT_EQ(v.tokens, 4);
  EXPECT_EQ(v.heads, 2);
  EXPECT_EQ(v.head_dim, 6);
  const std::vector<void*> bases = blob.Bases();
  ASSERT_EQ(bases.size(), 6u);
  EXPECT_EQ(bases[0], blob.K(0).base);
  EXPECT_EQ(bases[3], blob.V(1).base);
}

TEST(KvBlob, ParsesItselfAndSurvivesACopy) {
  const KvBlob blob = Filled(9, 5);
  const auto facts = ParseBlob(blob.bytes());
  ASSERT_TRUE(facts.ok()) << facts.error().message;
  EXPECT_THAT(facts->positions, ElementsAre(9, 10, 11, 12, 13));
  EXPECT_EQ(facts->layers, 3);
  EXPECT_EQ(facts->row_bytes_k, 16u);
  EXPECT_EQ(facts->row_bytes_v, 24u);
  const auto copy = KvBlob::FromBytes(kGeometry, blob.bytes());
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(Bytes(*copy), Bytes(blob));
}

TEST(KvBlob, WriteHeadersForgetsTheSequenceNumber) {
  KvBlob blob = Filled(3, 2);
  const std::vector<uint8_t> before = Bytes(blob);
  blob.bytes()[4] = 1;
  blob.bytes()[16 + 8] = 1;
  ASSERT_TRUE(ParseBlob(blob.bytes(), kGeometry).ok());
  blob.WriteHeaders();
  EXPECT_EQ(Bytes(blob), before);
}

TEST(KvBlob, SliceHoldsTheSameRows) {
  const KvBlob blob = Filled(10, 8);
  const auto slice = blob.Slice(13, 16);
  ASSERT_TRUE(slice.ok());
  EXPECT_EQ(Bytes(*slice), Bytes(Filled(13, 3)));
  EXPECT_FALSE(blob.Slice(9, 12).ok());
  EXPECT_FALSE(blob.Slice(13, 19).ok());
  EXPECT_FALSE(blob.Slice(13, 13).ok());
}

TEST(KvBlob, HoldsRowsOfPositionsWithGaps) {
  KvBlob blob = *KvBlob::Create(kGeometry, {3, 4, 9});
  for (const RowView& rows : {blob.K(2), blob.V(2)}) {
    for (int32_t t = 0; t < 3; ++t)
      std::fill_n(rows.base + t * rows.token_stride, rows.token_stride, static_cast<uint8_t>(7 + t));
  }
  EXPECT_TRUE(blob.has_gaps());
  EXPECT_FALSE(Filled(3, 3).has_gaps());
  EXPECT_EQ(blob.pos_begin(), 3);
  EXPECT_EQ(blob.pos_end(), 10);
  EXPECT_EQ(blob.tokens(), 3);
  EXPECT_EQ(BlobTokens(kGeometry, blob.bytes().size()), 3);
  EXPECT_EQ(BlobTokens(kGeometry, 16), 0);
  EXPECT_THAT(ParseBlob(blob.bytes())->positions, ElementsAre(3, 4, 9));
  EXPECT_THAT(KvBlob::FromBytes(kGeometry, blob.bytes())->positions(), ElementsAre(3, 4, 9));
  const auto slice = blob.Slice(4, 10);
  EXPECT_THAT(slice->positions(), ElementsAre(4, 9));
  for (const RowView& rows : {slice->K(2), slice->V(2)}) {
    EXPECT_EQ(rows.base[0], 8);
    EXPECT_EQ(rows.base[2 * rows.token_stride - 1], 9);
  }
  const auto last = blob.Slice(9, 10);
  EXPECT_THAT(last->positions(), ElementsAre(9));
  for (const RowView& rows : {last->K(2), last->V(2)}) EXPECT_EQ(rows.base[0], 9);
  EXPECT_FALSE(blob.Slice(5, 9).ok());
  EXPECT_THAT(KvBlob::Create(kGeometry, {3, 3}).error().message, HasSubstr("positions[1] is 3"));
  EXPECT_THAT(KvBlob::Create(kGeometry, {-1}).error().message, HasSubstr("positions[0] is -1"));
  EXPECT_THAT(KvBlob::Create(kGeometry, std::vector<int32_t>()).error().message,
              HasSubstr("positions has 0 entries"));
}

TEST(KvBlob, RefusesSizesThatMakeNoSense) {
  EXPECT_THAT(KvBlob::Create(kGeometry, 0, 0).error().message, HasSubstr("tokens is 0"));
  EXPECT_THAT(KvBlob::Create(kGeometry, -1, 4).error().message, HasSubstr("pos_begin is -1"));
  EXPECT_FALSE(KvBlob::Create(kGeometry, INT32_MAX, 4).ok());
  EXPECT_FALSE(KvBlob::Create(KvGeometry{}, 0, 4).ok());
}

TEST(ParseBlob, EveryTruncationIsRefused) {
  const std::vector<uint8_t> bytes = Bytes(Filled(0, 3));
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto facts = ParseBlob(std::span(bytes).first(size));
    ASSERT_FALSE(facts.ok()) << size;
    EXPECT_EQ(facts.error().kind, ErrorKind::kCorrupt) << facts.error().message;
  }
}

TEST(ParseBlob, TrailingBytesAreRefused) {
  std::vector<uint8_t> bytes = Bytes(Filled(0, 3));
  bytes.push_back(0);
  EXPECT_THAT(ParseBlob(bytes).error().message, HasSubstr("length"));
}

TEST(ParseBlob, NamesTheFieldThatIsWrong) {
  const struct {
    size_t at;
    uint32_t value;
    ErrorKind kind;
    const char* field;
  } cases[] = {
      {0, 0xdeadbeef, ErrorKind::kCorrupt, "magic is 3735928559"},
      {8, 2, ErrorKind::kCorrupt, "streams is 2"},
      {12, 0, ErrorKind::kCorrupt, "cells is 0"},
      {12, 0xffffffff, ErrorKind::kCorrupt, "cells is 4294967295"},
      {12, 1 << 24, ErrorKind::kCorrupt, "ends inside cells"},
      {16, 0xffffffff, ErrorKind::kCorrupt, "position is -1"},
      {28, 0, ErrorKind::kCorrupt, "position is 0"},
      {20, 2, ErrorKind::kCorrupt, "sequences of a cell is 2"},
      {40, 1, ErrorKind::kUnsupported, "transposed V is 1"},
      {44, 0, ErrorKind::kCorrupt, "layers is 0"},
      {44, 0x10001, ErrorKind::kCorrupt, "layers is 65537"},
      {44, 60000, ErrorKind::kUnsupported, "K of layer 3: row bytes is 24, must be 16"},
      {48, 8, ErrorKind::kUnsupported, "K of layer 0: type is 8"},
      {52, 15, ErrorKind::kCorrupt, "row bytes is 15"},
      {56, 0x80000000, ErrorKind::kCorrupt, "row bytes"},
  };
  for (const auto& c : cases) {
    std::vector<uint8_t> bytes = Bytes(Filled(0, 2));
    Poke(bytes, c.at, c.value);
    const auto facts = ParseBlob(bytes);
    ASSERT_FALSE(facts.ok()) << c.field;
    EXPECT_THAT(facts.error().message, HasSubstr(c.field));
    EXPECT_EQ(facts.error().kind, c.kind) << facts.error().message;
  }
}

TEST(ParseBlob, PositionsMustNotOverflow) {
  std::vector<uint8_t> bytes = Bytes(Filled(0, 2));
  Poke(bytes, 16, INT32_MAX);
  Poke(bytes, 28, 0x80000000);
  EXPECT_FALSE(ParseBlob(bytes).ok());
}

TEST(ParseBlob, AnotherModelIsRefused) {
  const KvBlob blob = Filled(0, 2);
  KvGeometry other = kGeometry;
  other.layers = 4;
  EXPECT_THAT(ParseBlob(blob.bytes(), other).error().message, HasSubstr("layers is 3, the model has 4"));
  other = kGeometry;
  other.head_dim_v = 8;
  EXPECT_THAT(ParseBlob(blob.bytes(), other).error().message,
              HasSubstr("V row bytes is 24, the model has 32"));
}

TEST(GeometryOf, TakesOnlyHeadsThatFillTheRows) {
  const auto facts = ParseBlob(Filled(0, 1).bytes());
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(*GeometryOf(*facts, 2, 4), kGeometry);
  EXPECT_THAT(GeometryOf(*facts, 2, 5).error().message, HasSubstr("2 KV heads of 5 elements"));
  EXPECT_FALSE(GeometryOf(*facts, 0, 4).ok());
  EXPECT_FALSE(GeometryOf(*facts, 8, 1).ok());
  EXPECT_FALSE(GeometryOf(*facts, 2, INT64_MAX).ok());
}

TEST(ParseBlob, RandomHeaderMutationsNeverReadOutside) {
  const std::vector<uint8_t> whole = Bytes(Filled(0, 3));
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    // A copy of exact size, so that the address sanitizer sees a read behind its end.
    std::vector<uint8_t> bytes(whole.begin(),
                               whole.begin() + static_cast<ptrdiff_t>(whole.size() - random() % 40));
    for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    refused += !ParseBlob(bytes).ok();
  }
  EXPECT_GT(refused, 15000);
}

}  // namespace
}  // namespace kvt::engine
