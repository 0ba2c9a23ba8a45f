#include "engine/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace kvt::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PrefillChunks, EveryLengthIsCoveredByChunksOfAllowedSize) {
  for (const int32_t chunk : {128, 192, 512}) {
    for (int32_t tokens = 0; tokens <= 3 * chunk + 1; ++tokens) {
      const auto sizes = PrefillChunks(tokens, chunk);
      ASSERT_TRUE(sizes.ok());
      EXPECT_EQ(std::accumulate(sizes->begin(), sizes->end(), 0), tokens);
      for (const int32_t size : *sizes) {
        EXPECT_LE(size, chunk);
        EXPECT_GE(size, std::min(tokens, kMinChunk)) << tokens << " tokens in chunks of " << chunk;
      }
    }
  }
}

TEST(PrefillChunks, ShortRestIsFilledUpFromTheChunkBefore) {
  EXPECT_THAT(*PrefillChunks(1024 + 10, 512), ElementsAre(512, 458, 64));
  EXPECT_THAT(*PrefillChunks(1024 + 64, 512), ElementsAre(512, 512, 64));
  EXPECT_THAT(*PrefillChunks(129, 128), ElementsAre(65, 64));
  EXPECT_THAT(*PrefillChunks(7, 512), ElementsAre(7));
  EXPECT_THAT(*PrefillChunks(0, 512), IsEmpty());
}

TEST(PrefillChunks, RefusesWhatCannotKeepTheRule) {
  EXPECT_THAT(PrefillChunks(100, 127).error().message, HasSubstr("chunk is 127"));
  EXPECT_THAT(PrefillChunks(-1, 512).error().message, HasSubstr("tokens is -1"));
}

TEST(ReusableTokens, LeavesNothingOrAWholeChunk) {
  for (int32_t prefill = 0; prefill < 400; ++prefill) {
    for (int32_t matched = 0; matched <= prefill + 20; matched += 7) {
      const auto reuse = ReusableTokens(prefill, matched, 16);
      ASSERT_TRUE(reuse.ok());
      EXPECT_LE(*reuse, matched);
      EXPECT_EQ(*reuse % 16, 0);
      const int32_t left = prefill - *reuse;
      EXPECT_TRUE(left == 0 || left >= kMinChunk || *reuse == 0)
          << prefill << " " << matched << " " << *reuse;
    }
  }
}

TEST(ReusableTokens, DropsBlocksOnlyWhenTheRestIsShort) {
  EXPECT_EQ(*ReusableTokens(2000, 1600, 16), 1600);
  EXPECT_EQ(*ReusableTokens(2000, 1999, 16), 1936);
  EXPECT_EQ(*ReusableTokens(1984, 1984, 16), 1984);
  EXPECT_EQ(*ReusableTokens(60, 48, 16), 0);
  EXPECT_THAT(ReusableTokens(10, 10, 0).error().message, HasSubstr("grain is 0"));
  EXPECT_THAT(ReusableTokens(10, -3, 16).error().message, HasSubstr("matched is -3"));
}

}  // namespace
}  // namespace kvt::engine
