#include "engine/support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvt::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ModelTraits Plain() { return ModelTraits{.architecture = "llama", .rope = RopeStyle::kInterleaved}; }

void ExpectRefused(const ModelTraits& traits, const std::string& field) {
  const Status status = CheckSupported(traits);
  ASSERT_FALSE(status.ok()) << field;
  EXPECT_EQ(status.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(status.error().message, AllOf(HasSubstr("'llama'"), HasSubstr(field)));
}

TEST(Support, PlainAttentionIsTakenWithEveryPlainRope) {
  for (const RopeStyle style : {RopeStyle::kNone, RopeStyle::kInterleaved, RopeStyle::kHalfSplit}) {
    ModelTraits traits = Plain();
    traits.rope = style;
    EXPECT_TRUE(CheckSupported(traits).ok());
  }
}

TEST(Support, EveryRefusalNamesArchitectureAndField) {
  ModelTraits traits = Plain();
  traits.recurrent = true;
  ExpectRefused(traits, "recurrent state");
  traits = Plain();
  traits.hybrid = true;
  ExpectRefused(traits, "hybrid state");
  traits = Plain();
  traits.sliding_window = 4096;
  ExpectRefused(traits, "attention.sliding_window = 4096");
  traits = Plain();
  traits.has_encoder = true;
  ExpectRefused(traits, "encoder");
  traits = Plain();
  traits.has_decoder = false;
  ExpectRefused(traits, "decoder");
  traits = Plain();
  traits.diffusion = true;
  ExpectRefused(traits, "diffusion");
  traits = Plain();
  traits.kv_lora_rank = 512;
  ExpectRefused(traits, "attention.kv_lora_rank = 512");
  traits = Plain();
  traits.rope = RopeStyle::kMulti;
  ExpectRefused(traits, "rope.dimension_sections");
  traits = Plain();
  traits.split_count = 3;
  ExpectRefused(traits, "split.count = 3");
}

}  // namespace
}  // namespace kvt::engine
