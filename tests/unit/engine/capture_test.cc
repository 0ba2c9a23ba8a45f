// Queries and residual streams that a session captures, and the weights that go with them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "engine/gguf_weights.h"
#include "unit/engine/gguf_writer.h"
#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Session> CapturingSession(int32_t every) {
  return std::move(*TestEngine().NewSession({.context_tokens = 512, .capture_every = every}));
}

TEST(Capture, LeavesTheBitsOfLogitsAndRowsAlone) {
  const std::vector<int32_t> prompt = Prompt(300);
  const auto plain = NewSession(512);
  const auto capturing = CapturingSession(3);
  ASSERT_TRUE(plain->Prefill(prompt, 128).ok());
  ASSERT_TRUE(capturing->Prefill(prompt, 128).ok());
  EXPECT_TRUE(SameBits(plain->Logits(0), capturing->Logits(0)));
  EXPECT_TRUE(std::ranges::equal(plain->Export(0, 300)->bytes(), capturing->Export(0, 300)->bytes()));
  EXPECT_TRUE(SameBits(Continue(*plain, 42, 4).logits, Continue(*capturing, 42, 4).logits));
}

TEST(Capture, TakesEveryNthPositionWhateverTheChunks) {
  const std::vector<int32_t> prompt = Prompt(300);
  const auto all = CapturingSession(1);
  const auto some = CapturingSession(7);
  ASSERT_TRUE(all->Prefill(prompt).ok());
  ASSERT_TRUE(some->Prefill(prompt, 128).ok());
  const Captured every = all->TakeCaptured(), seventh = some->TakeCaptured();
  ASSERT_EQ(every.rows(), 300u);
  ASSERT_EQ(seventh.rows(), 42u);
  for (const size_t layer : {0u, 17u, 29u}) {
    for (size_t row = 0; row < seventh.rows(); ++row) {
      const auto position = static_cast<size_t>(seventh.positions[row]);
      EXPECT_EQ(position, 7 * row + 6);
      EXPECT_EQ(seventh.Residual(layer, row), every.Residual(layer, position));
      for (const size_t head : {0u, 8u}) {
        EXPECT_TRUE(SameBits({seventh.Query(layer, head, row), seventh.dim},
                             {every.Query(layer, head, position), every.dim}));
      }
    }
  }
}

// The first layer's query of a token depends on nothing but the token and its position.
TEST(Capture, QueriesAreRotatedAsTheKeysAre) {
  const auto session = CapturingSession(1);
  ASSERT_TRUE(session->Prefill(std::vector<int32_t>(100, 42)).ok());
  const Captured captured = session->TakeCaptured();
  const RopeFacts& rope = TestEngine().geometry().rope;
  ASSERT_EQ(rope.style, RopeStyle::kInterleaved);
  for (const size_t position : {1u, 50u, 99u}) {
    for (size_t i = 0; i < captured.dim; i += 2) {
      const double angle =
          static_cast<double>(position) * std::pow(rope.base, -static_cast<double>(i) / rope.dims);
      const float* first = captured.Query(0, 3, 0);
      const double x = double{first[i]} * std::cos(angle) - double{first[i + 1]} * std::sin(angle);
      EXPECT_NEAR(x, double{captured.Query(0, 3, position)[i]}, 1e-3);
    }
  }
}

TEST(Capture, TheFirstLayerReadsTheEmbedding) {
  const std::vector<int32_t> prompt = Prompt(20);
  const auto session = CapturingSession(1);
  ASSERT_TRUE(session->Prefill(prompt).ok());
  const Captured captured = session->TakeCaptured();
  const Geometry& geometry = TestEngine().geometry();
  EXPECT_EQ(geometry.heads, 9);
  const auto width = static_cast<size_t>(geometry.width);
  const auto weights = GgufWeights::Open(TestEngine().path());
  ASSERT_TRUE(weights.ok());
  const auto embedding = weights->Matrix("token_embd.weight", geometry.vocab, geometry.width);
  ASSERT_TRUE(embedding.ok()) << embedding.error().message;
  for (size_t row = 0; row < prompt.size(); ++row) {
    double square = 0;
    for (size_t i = 0; i < width; ++i)
      square += std::pow(double{(*embedding)[static_cast<size_t>(prompt[row]) * width + i]}, 2);
    square /= static_cast<double>(width);
    EXPECT_NEAR(double{captured.Residual(0, row)} / square, 1, 1e-4);
  }
}

TEST(Capture, ForgetsWhatIsTruncatedAndWhatWasTaken) {
  const std::vector<int32_t> prompt = Prompt(200);
  const auto session = CapturingSession(10);
  ASSERT_TRUE(session->Prefill(std::span(prompt).first(100)).ok());
  EXPECT_EQ(session->TakeCaptured().rows(), 10u);
  EXPECT_FALSE(
      session->Prefill(std::span(prompt).subspan(100), 0, [](int32_t, int32_t) { return false; }).ok());
  EXPECT_EQ(session->TakeCaptured().rows(), 0u);
  ASSERT_TRUE(session->Prefill(std::span(prompt).subspan(100)).ok());
  ASSERT_TRUE(session->Truncate(125).ok());
  for (int32_t i = 0; i < 10; ++i) ASSERT_TRUE(session->DecodeOne(42).ok());
  EXPECT_THAT(session->TakeCaptured().positions, ElementsAre(109, 119, 129));
  EXPECT_THAT(TestEngine().NewSession({.capture_every = -1}).error().message,
              HasSubstr("capture_every is -1"));
}

TEST(Capture, BeginsWhereItIsToldTo) {
  const std::vector<int32_t> prompt = Prompt(200);
  const auto session = CapturingSession(1);
  session->CaptureFrom(197);
  ASSERT_TRUE(session->Prefill(prompt).ok());
  EXPECT_THAT(session->TakeCaptured().positions, ElementsAre(197, 198, 199));
  session->CaptureFrom(202);
  for (int32_t i = 0; i < 4; ++i) ASSERT_TRUE(session->DecodeOne(42).ok());
  EXPECT_THAT(session->TakeCaptured().positions, ElementsAre(202, 203));
}

TEST(GgufWeights, NamesWhatDoesNotFit) {
  const auto weights = GgufWeights::Open(ModelPath());
  ASSERT_TRUE(weights.ok());
  EXPECT_THAT(weights->Matrix("blk.30.attn_output.weight", 576, 576).error().message,
              HasSubstr("no tensor blk.30.attn_output.weight"));
  const auto other = weights->Matrix("blk.0.attn_output.weight", 576, 512);
  EXPECT_EQ(other.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(other.error().message, HasSubstr("576 rows of 576, expected 576 of 512"));
  EXPECT_EQ(GgufWeights::Open("/nonexistent").error().kind, ErrorKind::kIo);
}

TEST(GgufWeights, ReadsRowsInTheirOrder) {
  GgufWriter writer;
  writer.Text("general.architecture", "none").Tensor("first", {3, 5}).Tensor("second", {2, 3});
  const TemporaryFile file(writer.File());
  const auto weights = GgufWeights::Open(file.path());
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  const auto second = weights->Matrix("second", 3, 2);
  ASSERT_TRUE(second.ok());
  uint32_t seed = 1;
  std::vector<float> expected;
  for (int i = 0; i < 15 + 6; ++i) {
    seed = seed * 1664525u + 1013904223u;
    if (i >= 15) expected.push_back(static_cast<float>(seed >> 8) / 16777216.0f - 0.5f);
  }
  EXPECT_EQ(*second, expected);
}

}  // namespace
}  // namespace kvt::engine
