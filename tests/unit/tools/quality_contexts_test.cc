#include "kvartet/quality_contexts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "unit/tools/scratch_folder.h"

namespace kvt::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

QualityDocument Document(int32_t tokens, bool copy) {
  QualityDocument document{"text", copy, std::vector<int32_t>(static_cast<size_t>(tokens))};
  std::iota(document.tokens.begin(), document.tokens.end(), 0);
  return document;
}

const ContextCut kCut = {{1000, 500}, 40, {-1, -2, -3}};

TEST(QualityContexts, ATextIsFollowedByItsOwnTokens) {
  const QualityContext context = CutContext(Document(1040, false), 500, kCut);
  ASSERT_EQ(context.context.size(), 500u);
  EXPECT_EQ(context.shared, 500);
  EXPECT_EQ(context.context.back(), 499);
  ASSERT_EQ(context.continuation.size(), 40u);
  EXPECT_EQ(context.continuation.front(), 500);
}

TEST(QualityContexts, ACopyProbeAsksForAnEarlyPassage) {
  const QualityContext context = CutContext(Document(1040, true), 500, kCut);
  ASSERT_EQ(context.context.size(), 500u);
  const int32_t tail = 3 + kCueTokens;
  EXPECT_EQ(context.shared, 500 - tail);
  EXPECT_EQ(context.context[static_cast<size_t>(context.shared) - 1], context.shared - 1);
  EXPECT_EQ(context.context[static_cast<size_t>(context.shared)], -1);
  EXPECT_EQ(context.context[500 - kCueTokens], kPassageBegin);
  EXPECT_EQ(context.context.back(), kPassageBegin + kCueTokens - 1);
  ASSERT_EQ(context.continuation.size(), 40u);
  EXPECT_EQ(context.continuation.front(), kPassageBegin + kCueTokens);
}

TEST(QualityContexts, ShortDocumentsHaveShortContextsOnly) {
  EXPECT_TRUE(HasContext(Document(1040, false), 1000, kCut));
  EXPECT_FALSE(HasContext(Document(1039, false), 1000, kCut));
  EXPECT_TRUE(HasContext(Document(1039, false), 500, kCut));
  EXPECT_TRUE(HasContext(Document(1000 - 3 - kCueTokens, true), 1000, kCut));
  EXPECT_FALSE(HasContext(Document(1000 - 4 - kCueTokens, true), 1000, kCut));
}

TEST(QualityContexts, ThePassageOfACopyProbeIsBeforeTheWindow) {
  EXPECT_EQ(LeastCopyContext(kCut, 128), kPassageBegin + kCueTokens + 40 + 128);
  EXPECT_EQ(LeastCopyContext(kCut, 0), kPassageBegin + kCueTokens + 40 + 3 + kCueTokens);
}

TEST(QualityContexts, ListsNameCopyProbes) {
  EXPECT_TRUE(IsCopyProbe("04-copy-prose-package-file"));
  EXPECT_FALSE(IsCopyProbe("04-prose-copy-file"));
  EXPECT_FALSE(IsCopyProbe("-copy-file"));
  EXPECT_FALSE(IsCopyProbe("copy-file"));
  EXPECT_FALSE(IsCopyProbe("04"));
  EXPECT_FALSE(IsCopyProbe(""));
}

TEST(QualityContexts, LengthsDescendAndFitTheModel) {
  const std::vector<int32_t> asked = {512, 8192, 1536, 512};
  EXPECT_THAT(ContextLengths(asked, 96, 132, 8192), ElementsAre(8096, 1536, 512));
  EXPECT_THAT(Thrown([&] { ContextLengths(asked, 96, 132, 8191); }),
              HasSubstr("8192 tokens and 96 after it are more than the model's context of 8191"));
  EXPECT_THAT(Thrown([&] { ContextLengths(asked, 96, 512, 8192); }),
              HasSubstr("512 of 512 tokens are exempt"));
  EXPECT_THAT(Thrown([&] { ContextLengths(asked, 9000, 132, 8192); }), HasSubstr("9000 after it"));
}

}  // namespace
}  // namespace kvt::cli
