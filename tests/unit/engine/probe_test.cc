#include "engine/probe.h"

#include <gmock/gmock.h>

#include <cstring>

#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::HasSubstr;

// Rows whose bits differ.
size_t DifferingRows(const ProbeRows& rows) {
  size_t differing = 0;
  for (size_t r = 0; r < rows.rows(); ++r) {
    differing += std::memcmp(rows.alone.data() + r * rows.vocabulary,
                             rows.batched.data() + r * rows.vocabulary, rows.vocabulary * sizeof(float)) != 0;
  }
  return differing;
}

TEST(Probe, OneThreadWithFlashAttentionIsBitIdenticalAtEveryWidth) {
  const auto rows = Probe(TestEngine());
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  // Two contexts; each width gives its rows and the last token once more at place 0.
  ASSERT_EQ(rows->rows(), 2u * ((2 + 1) + (4 + 1) + (8 + 1) + (9 + 1)));
  ASSERT_EQ(rows->alone.size(), rows->rows() * rows->vocabulary);
  EXPECT_EQ(DifferingRows(*rows), 0u);
  EXPECT_NE(rows->alone.front(), 0);
}

// The control: with two threads the engine splits a lone query over more than 512 cells, and a batch not.
TEST(Probe, TwoThreadsOverALongContextAreFoundOut) {
  const auto rows = Probe(TestEngine(), {.session = {.threads = 2}, .widths = {2}, .contexts = {640}});
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  EXPECT_GT(DifferingRows(*rows), 0u);
}

TEST(Probe, RefusesWidthsAndContextsThatMakeNoSense) {
  EXPECT_THAT(Probe(TestEngine(), {.widths = {1}}).error().message, HasSubstr("width is 1"));
  EXPECT_THAT(Probe(TestEngine(), {.widths = {65}}).error().message, HasSubstr("width is 65"));
  EXPECT_THAT(Probe(TestEngine(), {.contexts = {0}}).error().message, HasSubstr("context is 0"));
  EXPECT_THAT(Probe(TestEngine(), {.widths = {}}).error().message, HasSubstr("needs a width"));
}

}  // namespace
}  // namespace kvt::engine
