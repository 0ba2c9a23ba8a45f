// Rows out of one session and into another: the continuation must be the same, bit for bit.
#include <gmock/gmock.h>

#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Bytes(const KvBlob& blob) { return {blob.bytes().begin(), blob.bytes().end()}; }

// A prompt of 320 tokens, prefilled once, and what follows it.
class KvMove : public ::testing::Test {
 protected:
  static constexpr int32_t kTokens = 320;
  static constexpr int32_t kNext = 42;
  static constexpr int32_t kSteps = 6;

  static void SetUpTestSuite() {
    source_ = NewSession().release();
    ASSERT_TRUE(source_->Prefill(Prompt(kTokens)).ok());
    expected_ = new Continuation(Continue(*source_, kNext, kSteps));
    ASSERT_TRUE(source_->Truncate(kTokens).ok());
  }
  static void TearDownTestSuite() {
    delete source_;
    delete expected_;
    source_ = nullptr;
    expected_ = nullptr;
  }
  static KvBlob Export(int32_t begin, int32_t end) {
    Result<KvBlob> blob = source_->Export(begin, end);
    EXPECT_TRUE(blob.ok()) << blob.error().message;
    return std::move(*blob);
  }
  static void ExpectSameContinuation(Session& session) {
    const Continuation got = Continue(session, kNext, kSteps);
    EXPECT_EQ(got.tokens, expected_->tokens);
    EXPECT_TRUE(SameBits(got.logits, expected_->logits));
  }

  static Session* source_;
  static Continuation* expected_;
};

Session* KvMove::source_ = nullptr;
Continuation* KvMove::expected_ = nullptr;

TEST_F(KvMove, WholeExportContinuesTheSame) {
  const KvBlob blob = Export(0, kTokens);
  EXPECT_EQ(blob.bytes().size(), BlobBytes(TestEngine().geometry().kv, kTokens));
  const auto target = NewSession();
  ASSERT_TRUE(target->Commit(blob).ok());
  EXPECT_EQ(target->Length(), kTokens);
  ExpectSameContinuation(*target);
  const auto back = target->Export(0, kTokens);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(Bytes(*back), Bytes(blob));
}

TEST_F(KvMove, FourPiecesInOrderContinueTheSame) {
  const auto target = NewSession();
  const int32_t cuts[] = {0, 16, 96, 257, kTokens};
  for (int i = 0; i < 4; ++i) {
    const Status status = target->Commit(Export(cuts[i], cuts[i + 1]));
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(target->Length(), cuts[i + 1]);
  }
  ExpectSameContinuation(*target);
}

TEST_F(KvMove, ReservedBufferFilledRowByRowContinuesTheSame) {
  const KvBlob from = Export(0, kTokens);
  const auto target = NewSession();
  Result<KvBlob> into = target->Reserve(0, kTokens);
  ASSERT_TRUE(into.ok());
  const KvGeometry& kv = TestEngine().geometry().kv;
  for (int32_t layer = 0; layer < kv.layers; ++layer) {
    for (const bool k : {true, false}) {
      const RowView a = k ? from.K(layer) : from.V(layer);
      const RowView b = k ? into->K(layer) : into->V(layer);
      for (int32_t t = 0; t < kTokens; ++t) {
        for (int32_t h = 0; h < kv.kv_heads; ++h) {
          std::memcpy(b.base + t * b.token_stride + h * b.head_stride,
                      a.base + t * a.token_stride + h * a.head_stride,
                      static_cast<size_t>(a.head_dim * a.element_stride));
        }
      }
    }
  }
  ASSERT_TRUE(target->Commit(*into).ok());
  ExpectSameContinuation(*target);
}

TEST_F(KvMove, ABlobCanBeExportedIntoAgain) {
  Result<KvBlob> blob = source_->Reserve(100, 50);
  ASSERT_TRUE(blob.ok());
  ASSERT_TRUE(source_->ExportInto(*blob).ok());
  EXPECT_EQ(Bytes(*blob), Bytes(Export(100, 150)));
  for (const RowView& rows : {blob->K(0), blob->V(29)}) {
    std::memset(rows.base, 0xee, static_cast<size_t>(50 * rows.token_stride));
  }
  ASSERT_TRUE(source_->ExportInto(*blob).ok());
  EXPECT_EQ(Bytes(*blob), Bytes(Export(100, 150)));
  Result<KvBlob> beyond = source_->Reserve(kTokens - 1, 2);
  ASSERT_TRUE(beyond.ok());
  EXPECT_THAT(source_->ExportInto(*beyond).error().message, HasSubstr("[319, 321)"));
}

TEST_F(KvMove, ImportedPrefixAndPrefilledRestContinueTheSame) {
  const std::vector<int32_t> prompt = Prompt(kTokens);
  const int32_t reuse = *ReusableTokens(kTokens, 310, 16);
  EXPECT_EQ(reuse, 256);
  const auto target = NewSession();
  ASSERT_TRUE(target->Commit(Export(0, reuse)).ok());
  ASSERT_TRUE(target->Prefill(std::span(prompt).subspan(static_cast<size_t>(reuse))).ok());
  ExpectSameContinuation(*target);
}

TEST_F(KvMove, ReplacingRowsInTheMiddlePutsThemWhereTheyWere) {
  const auto target = NewSession();
  ASSERT_TRUE(target->Commit(Export(0, kTokens)).ok());
  const KvBlob right = Export(64, 128);
  Result<KvBlob> wrong = target->Reserve(64, 64);
  ASSERT_TRUE(wrong.ok());
  for (int32_t layer = 0; layer < wrong->geometry().layers; ++layer) {
    for (const RowView& rows : {wrong->K(layer), wrong->V(layer)})
      std::memset(rows.base, 0, static_cast<size_t>(64 * rows.token_stride));
  }
  ASSERT_TRUE(target->Commit(*wrong).ok());
  EXPECT_EQ(target->Length(), kTokens);
  const Continuation off = Continue(*target, kNext, 1);
  EXPECT_FALSE(SameBits(off.logits, std::span(expected_->logits).first(off.logits.size())));
  ASSERT_TRUE(target->Truncate(kTokens).ok());
  ASSERT_TRUE(target->Commit(right).ok());
  EXPECT_EQ(target->Length(), kTokens);
  ExpectSameContinuation(*target);
}

TEST_F(KvMove, RowsThatStraddleTheEndReplaceAndAppend) {
  const auto target = NewSession();
  ASSERT_TRUE(target->Commit(Export(0, 200)).ok());
  ASSERT_TRUE(target->Commit(Export(150, kTokens)).ok());
  EXPECT_EQ(target->Length(), kTokens);
  ExpectSameContinuation(*target);
}

TEST_F(KvMove, RowsOfADecodeMoveToAnotherSession) {
  const auto full = NewSession();
  const auto draft = NewSession();
  ASSERT_TRUE(full->Commit(Export(0, kTokens)).ok());
  ASSERT_TRUE(draft->Commit(Export(0, kTokens)).ok());
  ASSERT_TRUE(full->DecodeBatch(std::vector<int32_t>{kNext, 7, 8}).ok());
  const auto rows = full->Export(kTokens, kTokens + 3);
  ASSERT_TRUE(rows.ok());
  ASSERT_TRUE(draft->Commit(*rows).ok());
  EXPECT_TRUE(SameBits(Continue(*full, 9, 3).logits, Continue(*draft, 9, 3).logits));
}

TEST_F(KvMove, RefusesGapsOverflowsAndForeignRows) {
  const auto target = NewSession(256);
  EXPECT_THAT(target->Commit(Export(16, 32)).error().message,
              HasSubstr("pos_begin is 16, must be at most the length 0"));
  const Status full = target->Commit(Export(0, 257));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::kNoSpace);
  KvGeometry other = TestEngine().geometry().kv;
  other.layers = 2;
  EXPECT_THAT(target->Commit(*KvBlob::Create(other, 0, 4)).error().message, HasSubstr("geometry"));
  EXPECT_EQ(target->Length(), 0);
  EXPECT_THAT(source_->Export(10, 10).error().message, HasSubstr("export: [10, 10)"));
  EXPECT_THAT(source_->Export(0, kTokens + 1).error().message, HasSubstr("[0, 320)"));
  EXPECT_FALSE(source_->Export(-1, 4).ok());
}

TEST_F(KvMove, HeadersDamagedAfterCreateAreRefusedAndTheCacheStays) {
  const auto target = NewSession();
  ASSERT_TRUE(target->Commit(Export(0, kTokens)).ok());
  KvBlob bad = Export(16, 32);
  bad.bytes()[0] ^= 1;
  EXPECT_EQ(target->Commit(bad).error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(target->Length(), kTokens);
  ExpectSameContinuation(*target);
}

}  // namespace
}  // namespace kvt::engine
