#include "kvartet/repetition.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvt::cli {
namespace {

TEST(RepeatedShare, CountsTokensThatEndARunSeenBefore) {
  const std::vector<int32_t> tokens = {1, 2, 3, 1, 2, 3, 1, 4};
  EXPECT_DOUBLE_EQ(RepeatedShare(tokens, 3), 2.0 / 8);  // 1 2 3 and 2 3 1
  EXPECT_DOUBLE_EQ(RepeatedShare(tokens, 1), 4.0 / 8);
  EXPECT_EQ(RepeatedShare(tokens), 0);
  EXPECT_EQ(RepeatedShare({}), 0);
}

TEST(RepeatedShare, OfALoopIsNearlyOne) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 320; ++i) tokens.push_back(i % 7);
  EXPECT_NEAR(RepeatedShare(tokens), 1 - 22.0 / 320, 1e-12);
}

}  // namespace
}  // namespace kvt::cli
