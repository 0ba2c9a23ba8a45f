#include "engine/rope_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvt::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(DescribeRope, PlainHasNoFactorsAndDimsOfTheHeadByDefault) {
  GgufFacts facts;
  facts.rope_base = 500000;
  const RopeFacts rope = DescribeRope(RopeStyle::kHalfSplit, facts, 64);
  EXPECT_EQ(rope.style, RopeStyle::kHalfSplit);
  EXPECT_EQ(rope.dims, 64);
  EXPECT_EQ(rope.base, 500000);
  EXPECT_TRUE(rope.factors_known);
  EXPECT_THAT(rope.factors, IsEmpty());
  facts.rope_dims = 32;
  EXPECT_EQ(DescribeRope(RopeStyle::kHalfSplit, facts, 64).dims, 32);
  EXPECT_EQ(DescribeRope(RopeStyle::kNone, facts, 64).dims, 0);
}

TEST(DescribeRope, LinearScalingDividesEveryPair) {
  GgufFacts facts;
  facts.rope_scaling = "linear";
  facts.rope_scaling_factor = 4;
  const RopeFacts rope = DescribeRope(RopeStyle::kInterleaved, facts, 8);
  EXPECT_TRUE(rope.factors_known);
  EXPECT_THAT(rope.factors, SizeIs(4));
  EXPECT_THAT(rope.factors, Each(4.0));
}

TEST(DescribeRope, TensorOfFactorsIsKeptAndCombined) {
  GgufFacts facts;
  facts.rope_factors = {1, 2};
  EXPECT_THAT(DescribeRope(RopeStyle::kInterleaved, facts, 4).factors, ElementsAre(1, 2));
  facts.rope_scaling = "linear";
  facts.rope_scaling_factor = 3;
  EXPECT_THAT(DescribeRope(RopeStyle::kInterleaved, facts, 4).factors, ElementsAre(3, 6));
  EXPECT_FALSE(DescribeRope(RopeStyle::kInterleaved, facts, 8).factors_known);
}

TEST(DescribeRope, WhatIsNoPlainDivisionIsNotKnown) {
  GgufFacts facts;
  facts.rope_scaling = "yarn";
  facts.rope_scaling_factor = 4;
  EXPECT_FALSE(DescribeRope(RopeStyle::kHalfSplit, facts, 8).factors_known);
  facts = GgufFacts{};
  facts.rope_long_factors = true;
  EXPECT_FALSE(DescribeRope(RopeStyle::kHalfSplit, facts, 8).factors_known);
}

}  // namespace
}  // namespace kvt::engine
