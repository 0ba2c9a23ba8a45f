// Cells that are dropped out of the middle of a sequence.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> Range(int32_t begin, int32_t end) {
  std::vector<int32_t> positions(static_cast<size_t>(end - begin));
  std::iota(positions.begin(), positions.end(), begin);
  return positions;
}

// The first tokens, every third one, and the last ones.
std::vector<int32_t> Some(int32_t length) {
  std::vector<int32_t> positions = Range(0, 4);
  for (int32_t p = 4; p < length - 20; p += 3) positions.push_back(p);
  const std::vector<int32_t> last = Range(length - 20, length);
  positions.insert(positions.end(), last.begin(), last.end());
  return positions;
}

std::unique_ptr<Session> Prefilled(int32_t tokens) {
  std::unique_ptr<Session> session = NewSession();
  EXPECT_TRUE(session->Prefill(Prompt(tokens)).ok());
  return session;
}

TEST(Keep, DropsTheOtherCellsAndLeavesRowsAndPositions) {
  const auto session = Prefilled(300);
  EXPECT_EQ(session->Cells(), 300);
  const auto all = session->Export(0, 300);
  const std::vector<int32_t> kept = Some(300);
  const Status status = session->Keep(kept);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(session->Cells(), static_cast<int32_t>(kept.size()));
  EXPECT_EQ(session->Length(), 300);
  const auto held = session->Export(0, 300);
  ASSERT_TRUE(held.ok()) << held.error().message;
  EXPECT_EQ(held->positions(), kept);
  EXPECT_TRUE(held->has_gaps());
  for (size_t i = 0; i < kept.size(); ++i) {
    const RowView before = all->K(7), after = held->K(7);
    EXPECT_TRUE(std::equal(before.base + kept[i] * before.token_stride,
                           before.base + (kept[i] + 1) * before.token_stride,
                           after.base + static_cast<int64_t>(i) * after.token_stride));
  }
  ASSERT_TRUE(session->DecodeOne(42).ok());
  EXPECT_EQ(session->Cells(), static_cast<int32_t>(kept.size()) + 1);
  EXPECT_EQ(session->Export(250, 301)->positions().back(), 300);
}

TEST(Keep, OfAllTokensChangesNoBits) {
  const auto session = Prefilled(300);
  const auto other = Prefilled(300);
  ASSERT_TRUE(session->Keep(Range(0, 300)).ok());
  EXPECT_TRUE(SameBits(Continue(*session, 42, 4).logits, Continue(*other, 42, 4).logits));
}

TEST(Keep, WhatIsDroppedIsNotSeen) {
  const auto session = Prefilled(300);
  const auto full = Prefilled(300);
  ASSERT_TRUE(session->Keep(Some(300)).ok());
  EXPECT_FALSE(SameBits(Continue(*session, 42, 1).logits, Continue(*full, 42, 1).logits));
}

TEST(Keep, InOneStepOrTwoAndOneByOneOrBatchedGivesTheSameBits) {
  const std::vector<int32_t> kept = Some(300);
  const auto once = Prefilled(300);
  ASSERT_TRUE(once->Keep(kept).ok());
  const auto twice = Prefilled(300);
  std::vector<int32_t> more = Range(0, 150);
  more.insert(more.end(), std::lower_bound(kept.begin(), kept.end(), 150), kept.end());
  ASSERT_TRUE(twice->Keep(more).ok());
  ASSERT_TRUE(twice->Keep(kept).ok());
  const Continuation single = Continue(*once, 42, 8);
  EXPECT_TRUE(SameBits(single.logits, Continue(*twice, 42, 8).logits));

  ASSERT_TRUE(twice->Truncate(300).ok());
  std::vector<int32_t> inputs = {42};
  inputs.insert(inputs.end(), single.tokens.begin(), single.tokens.end() - 1);
  ASSERT_TRUE(twice->DecodeBatch(inputs).ok());
  const auto vocab = static_cast<size_t>(TestEngine().geometry().vocab);
  for (size_t row = 0; row < inputs.size(); ++row) {
    EXPECT_TRUE(SameBits(twice->Logits(static_cast<int32_t>(row)),
                         std::span(single.logits).subspan(row * vocab, vocab)))
        << row;
  }
}

TEST(Keep, RoomThatIsFreeIsUsedAgain) {
  const auto session = NewSession(256);
  ASSERT_TRUE(session->Prefill(Prompt(256)).ok());
  EXPECT_EQ(session->DecodeOne(42).error().kind, ErrorKind::kNoSpace);
  ASSERT_TRUE(session->Keep(Some(256)).ok());
  ASSERT_TRUE(session->DecodeOne(42).ok());
  EXPECT_EQ(session->Length(), 257);
}

TEST(Keep, RefusesWhatIsNotHeldOrWouldTearTheSequence) {
  const auto session = Prefilled(100);
  const auto message = [&](const std::vector<int32_t>& positions) {
    const Status status = session->Keep(positions);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_THAT(message({}), HasSubstr("keep: the last position, 99, must stay"));
  EXPECT_THAT(message({0, 98}), HasSubstr("keep: the last position, 99, must stay"));
  EXPECT_THAT(message({0, 100}), HasSubstr("keep: positions[1] is 100"));
  EXPECT_THAT(message({5, 5, 99}), HasSubstr("keep: positions[1] is 5"));
  EXPECT_THAT(message({-1, 99}), HasSubstr("keep: positions[0] is -1"));
  EXPECT_EQ(session->Cells(), 100);
  std::vector<int32_t> kept = Range(0, 10);
  kept.insert(kept.end(), {60, 98, 99});
  EXPECT_EQ(message(kept), "");
  EXPECT_THAT(message({50, 99}), HasSubstr("keep: positions[0] is 50"));
  EXPECT_THAT(session->Truncate(98).error().message, HasSubstr("the position before it was dropped"));
  const auto rows = session->Export(0, 100);
  EXPECT_THAT(session->Commit(*rows).error().message, HasSubstr("the positions of the blob have gaps"));
  EXPECT_THAT(session->Commit(*rows->Slice(0, 10)).error().message,
              HasSubstr("the positions of the cache have gaps"));
  EXPECT_FALSE(session->Export(20, 60).ok());
  auto whole = session->Reserve(0, 100);
  EXPECT_THAT(session->ExportInto(*whole).error().message, HasSubstr("are not those that are held"));

  EXPECT_TRUE(session->Truncate(61).ok());
  EXPECT_EQ(session->Cells(), 11);
  EXPECT_TRUE(session->Truncate(10).ok());
  EXPECT_TRUE(session->Commit(*rows->Slice(0, 10)).ok());
  EXPECT_EQ(session->Cells(), 10);
  EXPECT_TRUE(session->Truncate(0).ok());
  EXPECT_EQ(session->Cells(), 0);
  EXPECT_EQ(session->Length(), 0);
}

}  // namespace
}  // namespace kvt::engine
