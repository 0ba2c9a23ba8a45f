// The buckets of a histogram, its percentiles, and many threads that add to one.
#include "base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

namespace kvt {
namespace {

uint64_t Percentile(const Histogram& histogram, uint32_t percent) {
  return Histogram::Counts(histogram).Percentile(percent);
}

TEST(Histogram, BucketsMeetAndCoverEveryTime) {
  EXPECT_EQ(Histogram::BucketOf(0), 0u);
  EXPECT_EQ(Histogram::BucketOf(1023), 0u);
  EXPECT_EQ(Histogram::BucketOf(1024), 1u);
  EXPECT_EQ(Histogram::BucketOf(1151), 1u);
  EXPECT_EQ(Histogram::BucketOf(1152), 2u);
  EXPECT_EQ(Histogram::BucketOf(2048), 9u);
  EXPECT_EQ(Histogram::BucketOf((uint64_t{1} << 42) - 1), Histogram::kBuckets - 2);
  EXPECT_EQ(Histogram::BucketOf(uint64_t{1} << 42), Histogram::kBuckets - 1);
  EXPECT_EQ(Histogram::BucketOf(UINT64_MAX), Histogram::kBuckets - 1);
  for (size_t bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
    EXPECT_EQ(Histogram::BucketOf(Histogram::LeastOf(bucket)), bucket);
    if (bucket != 0) {
      EXPECT_EQ(Histogram::BucketOf(Histogram::LeastOf(bucket) - 1), bucket - 1);
    }
  }
}

TEST(Histogram, TheMiddleIsWithinASixteenthOfEveryTimeOfItsBucket) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t ns =
        (uint64_t{1} << 10) + (random() >> (22 + random() % 30)) % ((uint64_t{1} << 42) - 1024);
    const uint64_t middle = Histogram::MiddleOf(Histogram::BucketOf(ns));
    const uint64_t off = middle > ns ? middle - ns : ns - middle;
    ASSERT_LE(16 * off, ns) << ns;
  }
}

TEST(Histogram, PercentilesOfKnownTimes) {
  Histogram histogram;
  EXPECT_EQ(Percentile(histogram, 50), 0u);
  for (uint64_t ms = 1; ms <= 100; ++ms) histogram.Add(ms * 1'000'000);
  EXPECT_EQ(Histogram::Counts(histogram).total(), 100u);
  for (const uint32_t percent : {1u, 50u, 90u, 99u, 100u}) {
    const double ms = static_cast<double>(Percentile(histogram, percent)) / 1e6;
    EXPECT_NEAR(ms, percent, 0.0625 * percent) << percent;
  }
  Histogram one;
  one.Add(5'000'000);
  EXPECT_EQ(Percentile(one, 50), Percentile(one, 99));
  // Nine short ones and a long one: the long one is the tenth, so no 90th percentile.
  Histogram tail;
  for (int i = 0; i < 9; ++i) tail.Add(10);
  tail.Add(uint64_t{1} << 50);
  EXPECT_EQ(Percentile(tail, 90), 0u);
  EXPECT_EQ(Percentile(tail, 91), uint64_t{1} << 42);
}

TEST(Histogram, ThreadsLoseNothing) {
  Histogram histogram;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&histogram, t] {
      for (uint64_t i = 0; i < 10'000; ++i) histogram.Add((i % 50 + 1) << (10 + t));
    });
  }
  // A reader meanwhile sees sums that fit.
  for (int i = 0; i < 100; ++i) {
    const Histogram::Counts counts(histogram);
    EXPECT_LE(counts.Percentile(50), counts.Percentile(99));
    EXPECT_LE(counts.total(), 40'000u);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Histogram::Counts(histogram).total(), 40'000u);
}

}  // namespace
}  // namespace kvt
