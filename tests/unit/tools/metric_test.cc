#include "kvartet/metric.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "kvartet/half.h"

namespace kvt::cli {
namespace {

using engine::Captured;

constexpr uint16_t kHalfOne = 0x3c00, kHalfTwo = 0x4000, kHalfMinusOne = 0xbc00;

// Two query heads on each of two KV heads; keys of 4 elements, values of 2; a residual stream of 3.
engine::Geometry SmallGeometry() {
  engine::Geometry geometry;
  geometry.kv = {.layers = 1, .kv_heads = 2, .head_dim_k = 4, .head_dim_v = 2};
  geometry.heads = 4;
  geometry.width = 3;
  return geometry;
}

Captured QueriesAt(const std::vector<int32_t>& positions, const engine::Geometry& geometry) {
  Captured captured;
  captured.layers = static_cast<size_t>(geometry.kv.layers);
  captured.heads = static_cast<size_t>(geometry.heads);
  captured.dim = static_cast<size_t>(geometry.kv.head_dim_k);
  captured.positions = positions;
  captured.queries.resize(captured.layers * captured.heads * captured.rows() * captured.dim);
  captured.residual.resize(captured.layers * captured.rows(), 1.0f);
  return captured;
}

float* Query(Captured* captured, size_t head, size_t row) {
  return captured->queries.data() + (head * captured->rows() + row) * captured->dim;
}

// V of both heads: rows (1, 0), (-1, 2), then again, every fourth token of which is seen; K is not read.
engine::KvBlob Values(const engine::Geometry& geometry, int32_t tokens) {
  engine::KvBlob blob = std::move(*engine::KvBlob::Create(geometry.kv, 0, tokens));
  const engine::RowView rows = blob.V(0);
  for (int32_t token = 0; token < tokens; ++token) {
    const bool odd = token / 4 % 2 == 1;
    const uint16_t row[] = {odd ? kHalfOne : kHalfMinusOne, odd ? uint16_t{0} : kHalfTwo};
    for (int32_t head = 0; head < rows.heads; ++head)
      std::memcpy(rows.base + token * rows.token_stride + head * rows.head_stride, row, sizeof row);
  }
  return blob;
}

// Rows of the residual stream by query heads' elements: heads 0 to 3 read columns 0-1, 2-3, 4-5, 6-7.
const std::vector<float> kProjection = {1, 0, 0, 0, 0, 0, 2, 0,  //
                                        0, 2, 1, 1, 0, 0, 0, 0,  //
                                        0, 0, 0, 0, 3, 0, 0, 0};

TEST(Metric, OfValuesIsTheGramOfTheProjectionOverTheResidual) {
  const engine::Geometry geometry = SmallGeometry();
  Metric metric(geometry);
  metric.SetProjection(0, kProjection);
  Captured captured = QueriesAt({2, 10, 20}, geometry);
  captured.residual = {100, 2, 6};  // the first is a sink
  metric.Add(captured, Values(geometry, 24), 1);
  // Head 0: (1,0)(1,0)^T + (0,2)(0,2)^T + (1,1)(1,1)^T, over 4.
  EXPECT_EQ(metric.OfValues(0, 0), (std::vector<float>{0.5f, 0.25f, 0.25f, 1.25f}));
  EXPECT_EQ(metric.OfValues(0, 1), (std::vector<float>{13.0f / 4, 0, 0, 0}));
}

TEST(Metric, OfKeysIsTheMeanSquareOfQueriesTimesTheEnergyOfValues) {
  const engine::Geometry geometry = SmallGeometry();
  Metric metric(geometry);
  metric.SetProjection(0, kProjection);
  Captured captured = QueriesAt({3, 9}, geometry);
  Query(&captured, 0, 0)[0] = 1000;  // a sink
  Query(&captured, 0, 1)[0] = 2;
  Query(&captured, 1, 1)[0] = 2;
  Query(&captured, 1, 1)[3] = 4;
  Query(&captured, 3, 1)[1] = 1;
  metric.Add(captured, Values(geometry, 20), 1);
  // Values of tokens 4, 8, 12, 16: mean (0, 1), covariance (1, -1; -1, 1).
  // Energy of head 0: 2 * 1 + 5 * 1 - 2 * 1 = 5, a query head's half; of head 1: 13, half.
  const float first = 2.5f / 4, second = 6.5f / 4;
  EXPECT_EQ(metric.OfKeys(0, 0), (std::vector<float>{4 * first, 0, 0, 4 * first,  //
                                                     0, 0, 0, 0,                  //
                                                     0, 0, 0, 0,                  //
                                                     4 * first, 0, 0, 8 * first}));
  EXPECT_EQ(metric.OfKeys(0, 1)[5], 0.5f * second);
}

TEST(Metric, QueriesAreSeenFromKeysBeforeThem) {
  engine::Geometry geometry = SmallGeometry();
  geometry.rope.style = engine::RopeStyle::kHalfSplit;
  geometry.rope.dims = 4;
  geometry.rope.base = 100;
  Metric metric(geometry);
  metric.SetProjection(0, kProjection);
  std::vector<int32_t> positions(400);
  std::iota(positions.begin(), positions.end(), 1000);
  Captured captured = QueriesAt(positions, geometry);
  for (size_t row = 0; row < captured.rows(); ++row) {
    for (size_t head = 0; head < 2; ++head) Query(&captured, head, row)[0] = 1;
  }
  metric.Add(captured, Values(geometry, 20), 1);
  const std::vector<float> m = metric.OfKeys(0, 0);
  const float scale = 2.5f / 4;
  // The pair (0, 2) turns by a radian a position: seen from many, its square is spread over both.
  EXPECT_NEAR(double{m[0]}, double{scale / 2}, 0.03 * double{scale});
  EXPECT_NEAR(double{m[10]}, double{scale / 2}, 0.03 * double{scale});
  EXPECT_NEAR(double{m[0] + m[10]}, double{scale}, 1e-5);
  EXPECT_EQ(m[5], 0);
}

TEST(Metric, GoesOnAfterSaveAndRestore) {
  const engine::Geometry geometry = SmallGeometry();
  Captured captured = QueriesAt({7, 15}, geometry);
  for (size_t i = 0; i < captured.queries.size(); ++i)
    captured.queries[i] = static_cast<float>(i * 37 % 11) - 5;
  Metric whole(geometry), first(geometry), second(geometry);
  for (Metric* metric : {&whole, &first, &second}) metric->SetProjection(0, kProjection);
  whole.Add(captured, Values(geometry, 20), 1);
  first.Add(captured, Values(geometry, 20), 1);
  ASSERT_TRUE(second.Restore(first.Save()));
  whole.Add(captured, Values(geometry, 20), 2);
  second.Add(captured, Values(geometry, 20), 2);
  EXPECT_EQ(whole.OfKeys(0, 0), second.OfKeys(0, 0));
  EXPECT_EQ(whole.Save(), second.Save());
  std::vector<uint8_t> bytes = first.Save();
  bytes.pop_back();
  EXPECT_FALSE(second.Restore(bytes));
  EXPECT_EQ(whole.Save(), second.Save());
}

TEST(KeyFrame, TurnsBackBothKindsOfPairs) {
  engine::RopeFacts rope;
  rope.dims = 4;
  rope.base = 10000;
  for (const auto style : {engine::RopeStyle::kInterleaved, engine::RopeStyle::kHalfSplit}) {
    rope.style = style;
    rope.factors = {1, 2};
    const KeyFrame frame(rope, 5);
    const double angles[] = {3, 3 * 0.01 / 2};
    const size_t second = style == engine::RopeStyle::kInterleaved ? 1 : 2;
    const size_t step = style == engine::RopeStyle::kInterleaved ? 2 : 1;
    std::vector<float> row(5, 7.0f);
    for (size_t i = 0; i < 2; ++i) {  // (1, 0), rotated
      row[i * step] = static_cast<float>(std::cos(angles[i]));
      row[i * step + second] = static_cast<float>(std::sin(angles[i]));
    }
    frame.TurnBack(frame.At(3), row.data());
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(double{row[i * step]}, 1, 1e-6);
      EXPECT_NEAR(double{row[i * step + second]}, 0, 1e-6);
    }
    EXPECT_EQ(row[4], 7.0f);
  }
}

TEST(Half, GivesEveryNumberThatAnF16Holds) {
  EXPECT_EQ(FromHalf(0), 0.0f);
  EXPECT_TRUE(std::signbit(FromHalf(0x8000)));
  EXPECT_EQ(FromHalf(0x3555), 0x1.554p-2f);
  EXPECT_EQ(FromHalf(0x0001), 0x1p-24f);
  EXPECT_EQ(FromHalf(0x83ff), -0x1.ff8p-15f);
  EXPECT_EQ(FromHalf(0x0400), 0x1p-14f);
  EXPECT_EQ(FromHalf(0xfbff), -65504.0f);
  EXPECT_EQ(FromHalf(0x7c00), INFINITY);
  EXPECT_TRUE(std::isnan(FromHalf(0x7e00)));
}

}  // namespace
}  // namespace kvt::cli
