// The parts of a request add up to its time to first token exactly, whatever is marked and moved.
#include "measure/request_parts.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>
#include <string>

namespace kvt {
namespace {

uint64_t Of(const RequestParts& parts, int32_t part) { return parts.times()[part - 1]; }

TEST(RequestParts, EachMarkClosesThePartBefore) {
  RequestParts parts(1000);
  ASSERT_TRUE(parts.Mark(KVT_PART_QUEUE, 1003).ok());
  ASSERT_TRUE(parts.Mark(KVT_PART_PREFILL, 1010).ok());
  ASSERT_TRUE(parts.Mark(KVT_PART_TRANSFER, 1110).ok());
  ASSERT_TRUE(parts.Mark(KVT_PART_PREFILL, 1120).ok());  // again: times add up
  ASSERT_TRUE(parts.Mark(KVT_PART_FIRST_TOKEN, 1150).ok());
  EXPECT_FALSE(parts.has_first_token());
  ASSERT_TRUE(parts.FirstToken(1157).ok());
  EXPECT_TRUE(parts.has_first_token());
  EXPECT_EQ(Of(parts, KVT_PART_OTHER), 3u);
  EXPECT_EQ(Of(parts, KVT_PART_QUEUE), 7u);
  EXPECT_EQ(Of(parts, KVT_PART_PREFILL), 130u);
  EXPECT_EQ(Of(parts, KVT_PART_TRANSFER), 10u);
  EXPECT_EQ(Of(parts, KVT_PART_FIRST_TOKEN), 7u);
  EXPECT_EQ(Sum(parts.times()), 157u);
}

TEST(RequestParts, RandomMarksAndMovesAddUpExactly) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 500; ++round) {
    uint64_t now = random() % 1000000000;
    const uint64_t begin = now;
    RequestParts parts(now);
    for (int i = 0; i < 40; ++i) {
      now += random() % 1000;
      const auto a = static_cast<int32_t>(1 + random() % kParts),
                 b = static_cast<int32_t>(1 + random() % kParts);
      if (random() % 2 == 0) {
        ASSERT_TRUE(parts.Mark(a, now).ok());
      } else {
        const Status status = parts.Attribute(a, b, random() % 800, now);
        ASSERT_TRUE(status.ok() || CodeOf(status) == KVT_ERR_OUT_OF_RANGE);
      }
      ASSERT_LE(Sum(parts.times()), now - begin);
    }
    ASSERT_TRUE(parts.FirstToken(now).ok());
    ASSERT_EQ(Sum(parts.times()), now - begin);
    if (Of(parts, KVT_PART_QUEUE) > 0) {
      ASSERT_TRUE(parts.Attribute(KVT_PART_QUEUE, KVT_PART_DECODE, 1, now + 99).ok());
    }
    ASSERT_EQ(Sum(parts.times()), now - begin);
  }
}

TEST(RequestParts, MovesWhatTheRunningPartHasSoFar) {
  RequestParts parts(0);
  ASSERT_TRUE(parts.Mark(KVT_PART_TRANSFER, 0).ok());
  ASSERT_TRUE(parts.Attribute(KVT_PART_TRANSFER, KVT_PART_ENCODE, 40, 100).ok());
  const Status refused = parts.Attribute(KVT_PART_TRANSFER, KVT_PART_ENCODE, 61, 100);
  EXPECT_EQ(CodeOf(refused), KVT_ERR_OUT_OF_RANGE);
  EXPECT_NE(refused.message().find("transfer has 60"), std::string::npos);
  ASSERT_TRUE(parts.FirstToken(110).ok());
  EXPECT_EQ(Of(parts, KVT_PART_TRANSFER), 70u);
  EXPECT_EQ(Of(parts, KVT_PART_ENCODE), 40u);
}

TEST(RequestParts, AClockThatGoesBackStandsStill) {
  RequestParts parts(100);
  ASSERT_TRUE(parts.Mark(KVT_PART_QUEUE, 90).ok());
  ASSERT_TRUE(parts.Mark(KVT_PART_PREFILL, 80).ok());
  ASSERT_TRUE(parts.FirstToken(130).ok());
  EXPECT_EQ(Sum(parts.times()), 30u);
}

TEST(RequestParts, WrongCallsAreRefused) {
  RequestParts parts(0);
  EXPECT_EQ(CodeOf(parts.Mark(0, 1)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(parts.Mark(8, 1)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(parts.Attribute(-1, 1, 0, 1)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(parts.Attribute(1, 99, 0, 1)), KVT_ERR_INVALID_ARGUMENT);
  ASSERT_TRUE(parts.FirstToken(10).ok());
  EXPECT_EQ(CodeOf(parts.FirstToken(11)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(parts.Mark(KVT_PART_QUEUE, 11)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(Sum(parts.times()), 10u);
}

TEST(RequestParts, NamesAreAllDifferent) {
  std::set<std::string> names;
  for (int32_t i = 1; i <= kParts; ++i) names.insert(PartName(i));
  EXPECT_EQ(names.size(), static_cast<size_t>(kParts));
  names.clear();
  for (int32_t i = 1; i <= kCounters; ++i) names.insert(CounterName(i));
  EXPECT_EQ(names.size(), static_cast<size_t>(kCounters));
}

TEST(Counters, AFullCounterStaysFull) {
  uint64_t counter = 5;
  Add(7, &counter);
  EXPECT_EQ(counter, 12u);
  Add(std::numeric_limits<uint64_t>::max(), &counter);
  EXPECT_EQ(counter, std::numeric_limits<uint64_t>::max());
  Add(1, &counter);
  EXPECT_EQ(counter, std::numeric_limits<uint64_t>::max());
}

}  // namespace
}  // namespace kvt
