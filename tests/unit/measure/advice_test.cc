// The advice: each verdict it must be able to give, and nothing else in its place.
#include "measure/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Milliseconds of each part, in the order of KVT_PART_*.
WaySums Way(const char* name, std::array<double, kParts> ms) {
  WaySums way;
  way.way = name;
  way.requests = 1;
  for (int i = 0; i < kParts; ++i) way.times[i] = static_cast<uint64_t>(ms[i] * 1e6);
  return way;
}

WaySums Counting(WaySums way, int32_t counter, uint64_t amount) {
  way.counters[counter - 1] = amount;
  return way;
}

std::string Of(std::vector<WaySums> ways) {
  MeterSums sums;
  sums.ways = std::move(ways);
  const std::string text = Advise(sums);
  EXPECT_EQ(text.back(), '.');
  EXPECT_EQ(text.find('\n'), std::string::npos);
  return text;
}

//                                      queue prefill encode transfer decode first other
const WaySums kRecompute = Way("recompute", {0, 15000, 0, 0, 0, 25, 0});
const WaySums kHit = Way("cache_hit", {0, 900, 0, 20, 30, 25, 0});

TEST(Advice, TooLittleData) {
  EXPECT_THAT(Of({}), HasSubstr("Too little data"));
  WaySums unfinished;
  unfinished.way = "raw";
  unfinished.unfinished = 3;
  EXPECT_THAT(Of({unfinished}), HasSubstr("Too little data"));
  EXPECT_THAT(Of({Way("raw", {})}), HasSubstr("Too little data"));
}

TEST(Advice, RawIsBestOnAFastLinkAndPrefillDominates) {
  const std::string text =
      Of({kRecompute, Way("raw", {0, 15000, 8, 20, 8, 25, 0}), Way("lossy", {0, 15000, 120, 6, 60, 25, 0}),
          Way("lossy_verified", {0, 15000, 120, 26, 60, 70, 0}), kHit});
  EXPECT_THAT(text, AllOf(HasSubstr("ownership"), HasSubstr("raw is best on this link"), HasSubstr("99 %"),
                          HasSubstr("cache hit has its first token after 975 ms"), Not(HasSubstr("pays"))));
}

TEST(Advice, CompressionPaysOnASlowLink) {
  const std::string text = Of({kRecompute, Way("raw", {0, 15000, 8, 7500, 8, 25, 0}),
                               Way("lossy", {0, 15000, 120, 2500, 60, 25, 0}),
                               Way("lossy_verified", {0, 15000, 120, 10000, 60, 70, 0}), kHit});
  EXPECT_THAT(text, AllOf(HasSubstr("Touch size first"), HasSubstr("compression pays"), HasSubstr("2.7 s"),
                          HasSubstr("raw 7.5 s"), HasSubstr("verified first token waits"),
                          HasSubstr("10.2 s"), Not(HasSubstr("raw is best"))));
}

TEST(Advice, AGainBelowATenthDoesNotPay) {
  EXPECT_THAT(Of({Way("raw", {0, 100, 1, 400, 1, 5, 0}), Way("lossy", {0, 100, 150, 215, 10, 5, 0})}),
              AllOf(HasSubstr("raw is best"), HasSubstr("Touch location first"), HasSubstr("faster link")));
}

TEST(Advice, AGainBelowAFiftiethOfTheWholeDoesNotPay) {
  // A quarter of what comes after prefill, but 31 ms of 15 s: not worth a loss.
  EXPECT_THAT(
      Of({Way("raw", {0, 15000, 98, 3, 6, 17, 0}), Way("lossy", {0, 15000, 67, 9, 2, 15, 0})}),
      AllOf(HasSubstr("raw is best"), HasSubstr("the 31 ms that lossy frames save"), Not(HasSubstr("pays"))));
}

TEST(Advice, QueueComesBeforeAllElse) {
  EXPECT_THAT(
      Of({Way("raw", {9000, 5000, 8, 7500, 8, 25, 0}), Way("lossy", {9000, 5000, 120, 2500, 60, 25, 0})}),
      AllOf(HasSubstr("Touch location first"), HasSubstr("queue"), HasSubstr("compression pays")));
}

TEST(Advice, ComputingAgainMayBeFasterThanMoving) {
  EXPECT_THAT(Of({Way("recompute", {0, 300, 0, 0, 0, 25, 0}), Way("raw", {0, 300, 8, 7500, 8, 25, 0})}),
              AllOf(HasSubstr("Touch location first"), HasSubstr("computing again takes 300 ms"),
                    HasSubstr("7.5 s")));
}

TEST(Advice, OneShippedWayAloneAsksForTheOther) {
  EXPECT_THAT(Of({Way("raw", {0, 100, 1, 400, 1, 5, 0})}),
              AllOf(HasSubstr("size"), HasSubstr("lossy codec")));
  EXPECT_THAT(Of({Way("lossy", {0, 100, 1, 400, 1, 5, 0})}),
              AllOf(HasSubstr("size"), HasSubstr("raw frames")));
}

TEST(Advice, RecomputeAloneIsOwnership) {
  const std::string text = Of({kRecompute});
  EXPECT_THAT(text, AllOf(HasSubstr("ownership"), HasSubstr("keep KV"), Not(HasSubstr("on this link"))));
}

TEST(Advice, AVerifiedFirstTokenThatWaitsIsVerification) {
  EXPECT_THAT(Of({Way("raw", {0, 100, 1, 20, 1, 30, 0}), Way("lossy", {0, 100, 3, 15, 3, 30, 0}),
                  Way("lossy_verified", {0, 100, 3, 15, 3, 230, 0})}),
              HasSubstr("Touch verification first"));
}

TEST(Advice, LowAcceptanceIsVerification) {
  const WaySums raw = Way("raw", {0, 100, 1, 20, 1, 300, 0});
  WaySums verified = Way("lossy_verified", {0, 100, 3, 15, 3, 300, 0});
  verified = Counting(Counting(verified, KVT_COUNTER_TOKENS_DRAFTED, 100), KVT_COUNTER_TOKENS_ACCEPTED, 20);
  EXPECT_THAT(Of({raw, verified}), AllOf(HasSubstr("verification"), HasSubstr("20 %")));
  EXPECT_THAT(Of({raw, Counting(verified, KVT_COUNTER_TOKENS_ACCEPTED, 90)}), Not(HasSubstr("verification")));
}

TEST(Advice, NothingDominates) {
  EXPECT_THAT(Of({Way("raw", {0, 20, 1, 5, 1, 50, 0})}), HasSubstr("Touch nothing"));
  EXPECT_THAT(Of({Way("cache_hit", {0, 20, 1, 5, 1, 50, 0})}), HasSubstr("Touch nothing"));
}

TEST(Advice, OtherLabelsAreJudgedByTheirCounters) {
  const auto moved = [](const WaySums& way, uint64_t raw, uint64_t bytes) {
    return Counting(Counting(way, KVT_COUNTER_BYTES_RAW, raw), KVT_COUNTER_BYTES_MOVED, bytes);
  };
  EXPECT_THAT(Of({moved(Way("plain", {0, 1000, 8, 7500, 8, 25, 0}), 1000, 1010),
                  moved(Way("kivi4", {0, 1000, 120, 2500, 60, 25, 0}), 1000, 300)}),
              AllOf(HasSubstr("compression pays"), HasSubstr("way plain")));
  const WaySums hit = Counting(Way("again", {0, 900, 0, 20, 30, 25, 0}), KVT_COUNTER_BLOCKS_HIT, 9);
  EXPECT_THAT(Of({Way("local", {0, 15000, 0, 0, 0, 25, 0}), hit}),
              AllOf(HasSubstr("ownership"), HasSubstr("way local"),
                    HasSubstr("cache hit has its first token after 975 ms")));
}

}  // namespace
}  // namespace kvt
