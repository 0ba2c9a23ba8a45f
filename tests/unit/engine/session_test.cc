#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::HasSubstr;

TEST(Session, PrefillInAnyAllowedChunksGivesTheSameBits) {
  const std::vector<int32_t> prompt = Prompt(300);
  const auto whole = NewSession();
  const auto cut = NewSession();
  std::vector<int32_t> seen;
  ASSERT_TRUE(whole->Prefill(prompt).ok());
  ASSERT_TRUE(cut->Prefill(prompt, 128,
                           [&](int32_t done, int32_t total) {
                             EXPECT_EQ(total, 300);
                             seen.push_back(done);
                             return true;
                           })
                  .ok());
  EXPECT_EQ(seen, (std::vector<int32_t>{128, 236, 300}));
  EXPECT_TRUE(SameBits(whole->Logits(0), cut->Logits(0)));
  EXPECT_TRUE(SameBits(Continue(*whole, 42, 4).logits, Continue(*cut, 42, 4).logits));
}

TEST(Session, RowsCanBeShippedWhileThePrefillRuns) {
  const std::vector<int32_t> prompt = Prompt(300);
  const auto from = NewSession();
  const auto to = NewSession();
  ASSERT_TRUE(from->Prefill(prompt, 128,
                            [&](int32_t done, int32_t) {
                              const auto rows = from->Export(to->Length(), done);
                              EXPECT_TRUE(rows.ok() && to->Commit(*rows).ok());
                              return true;
                            })
                  .ok());
  EXPECT_EQ(to->Length(), 300);
  EXPECT_TRUE(SameBits(Continue(*from, 42, 4).logits, Continue(*to, 42, 4).logits));
}

TEST(Session, StoppedPrefillLeavesTheCacheAsBefore) {
  const std::vector<int32_t> prompt = Prompt(300);
  const auto session = NewSession();
  ASSERT_TRUE(session->Prefill(std::span(prompt).first(100)).ok());
  const auto stopped =
      session->Prefill(std::span(prompt).subspan(100), 128, [](int32_t, int32_t) { return false; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(session->Length(), 100);
  EXPECT_TRUE(session->Logits(0).empty());
  const auto other = NewSession();
  ASSERT_TRUE(other->Prefill(std::span(prompt).first(100)).ok());
  EXPECT_TRUE(SameBits(Continue(*session, 42, 4).logits, Continue(*other, 42, 4).logits));
}

// The prompt crosses 256 cells while decoding, where the engine's cache view grows.
TEST(Session, BatchOfAnyWidthEqualsOneByOneBitwise) {
  const std::vector<int32_t> prompt = Prompt(250);
  const auto session = NewSession();
  ASSERT_TRUE(session->Prefill(prompt).ok());
  const Continuation single = Continue(*session, 42, 12);
  std::vector<int32_t> inputs = {42};
  inputs.insert(inputs.end(), single.tokens.begin(), single.tokens.end());
  const auto vocab = static_cast<size_t>(TestEngine().geometry().vocab);
  for (const size_t width : {2u, 5u, 9u}) {
    ASSERT_TRUE(session->Truncate(250).ok());
    const auto choices = session->DecodeBatch(std::span(inputs).first(width));
    ASSERT_TRUE(choices.ok()) << choices.error().message;
    ASSERT_EQ(choices->size(), width);
    for (size_t row = 0; row < width; ++row) {
      EXPECT_EQ((*choices)[row].token, single.tokens[row]);
      EXPECT_TRUE(SameBits(session->Logits(static_cast<int32_t>(row)),
                           std::span(single.logits).subspan(row * vocab, vocab)))
          << "row " << row << " of " << width;
    }
    EXPECT_TRUE(session->Logits(static_cast<int32_t>(width)).empty());
  }
}

TEST(Session, TruncateThenTheSameTokensGivesTheSameBits) {
  const std::vector<int32_t> prompt = Prompt(200);
  const auto session = NewSession();
  ASSERT_TRUE(session->Prefill(prompt).ok());
  const Continuation first = Continue(*session, 42, 6);
  ASSERT_TRUE(session->Truncate(200).ok());
  EXPECT_EQ(session->Length(), 200);
  ASSERT_TRUE(session->DecodeBatch(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7}).ok());  // a wrong draft
  ASSERT_TRUE(session->Truncate(200).ok());
  const Continuation second = Continue(*session, 42, 6);
  EXPECT_EQ(first.tokens, second.tokens);
  EXPECT_TRUE(SameBits(first.logits, second.logits));
}

TEST(Session, TwoSessionsRunAtTheSameTime) {
  const std::vector<int32_t> prompt = Prompt(150);
  const auto alone = NewSession(256);
  ASSERT_TRUE(alone->Prefill(prompt).ok());
  const Continuation expected = Continue(*alone, 42, 6);
  const std::unique_ptr<Session> sessions[] = {NewSession(256), NewSession(256)};
  Continuation got[2];
  std::thread threads[2];
  for (int i = 0; i < 2; ++i) {
    threads[i] = std::thread([&, i] {
      EXPECT_TRUE(sessions[i]->Prefill(prompt).ok());
      got[i] = Continue(*sessions[i], 42, 6);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Continuation& continuation : got) {
    EXPECT_EQ(continuation.tokens, expected.tokens);
    EXPECT_TRUE(SameBits(continuation.logits, expected.logits));
  }
}

TEST(Session, ChoiceIsTheArgmaxAndGapOfItsRow) {
  const auto session = NewSession(256);
  const auto choice = session->Prefill(Prompt(20));
  ASSERT_TRUE(choice.ok());
  const std::span<const float> row = session->Logits(0);
  ASSERT_EQ(row.size(), static_cast<size_t>(TestEngine().geometry().vocab));
  const auto best = std::max_element(row.begin(), row.end());
  EXPECT_EQ(choice->token, best - row.begin());
  EXPECT_GE(choice->gap, 0);
}

TEST(Session, RefusesWhatDoesNotFitOrIsNoToken) {
  const auto session = NewSession(256);
  EXPECT_EQ(session->Capacity(), 256);
  const std::vector<int32_t> prompt = Prompt(257);
  const auto full = session->Prefill(prompt);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::kNoSpace);
  EXPECT_THAT(full.error().message, HasSubstr("257 tokens do not fit after 0 in a context of 256"));
  EXPECT_THAT(session->DecodeOne(-1).error().message, HasSubstr("token is -1"));
  EXPECT_THAT(session->DecodeOne(49152).error().message, HasSubstr("token is 49152"));
  EXPECT_THAT(session->DecodeBatch({}).error().message, HasSubstr("no tokens"));
  EXPECT_THAT(session->DecodeBatch(std::vector<int32_t>(65, 1)).error().message, HasSubstr("max_rows = 64"));
  EXPECT_THAT(session->Prefill(Prompt(10), 1024).error().message, HasSubstr("chunk is 1024"));
  EXPECT_THAT(session->Truncate(1).error().message, HasSubstr("length is 1"));
  EXPECT_EQ(session->Length(), 0);
}

TEST(Session, RefusesOptionsThatMakeNoSense) {
  const Engine& engine = TestEngine();
  EXPECT_THAT(engine.NewSession({.context_tokens = 0}).error().message, HasSubstr("context_tokens is 0"));
  EXPECT_THAT(engine.NewSession({.batch = 64}).error().message, HasSubstr("batch is 64"));
  EXPECT_THAT(engine.NewSession({.max_rows = 0}).error().message, HasSubstr("max_rows is 0"));
  EXPECT_THAT(engine.NewSession({.threads = 0}).error().message, HasSubstr("threads is 0"));
}

}  // namespace
}  // namespace kvt::engine
