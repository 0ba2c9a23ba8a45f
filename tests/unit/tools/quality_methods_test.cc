#include "kvartet/quality_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kvartet/library.h"

namespace kvt::cli {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::vector<std::string>& texts) {
  try {
    ParseMethods(texts);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "accepted";
}

TEST(QualityMethods, NamesAndRatios) {
  const std::vector<QualityMethod> methods = ParseMethods({"int8", "transform@4", "transform"});
  ASSERT_EQ(methods.size(), 3u);
  EXPECT_EQ(methods[0].label, "int8");
  EXPECT_EQ(methods[0].ratio, 0u);
  EXPECT_FALSE(methods[0].NeedsProfile());
  EXPECT_EQ(methods[1].codec, "transform");
  EXPECT_EQ(methods[1].ratio, 4u);
  EXPECT_TRUE(methods[1].NeedsProfile());
  EXPECT_EQ(methods[2].label, "transform@16");
}

TEST(QualityMethods, RefusalsNameTheMethod) {
  EXPECT_THAT(Refusal({}), HasSubstr("no codec"));
  EXPECT_THAT(Refusal({""}), HasSubstr("names no codec"));
  EXPECT_THAT(Refusal({"@8"}), HasSubstr("'@8' names no codec"));
  for (const char* text : {"transform@", "transform@3", "transform@33", "transform@8x", "transform@-8",
                           "transform@99999999999", "transform@8@8"}) {
    EXPECT_THAT(Refusal({text}), HasSubstr(std::string("'") + text + "': the ratio must be")) << text;
  }
  EXPECT_THAT(Refusal({"kivi4@8"}), HasSubstr("takes no ratio"));
  EXPECT_THAT(Refusal({"transform", "int8", "transform@16"}), HasSubstr("transform@16 is named twice"));
}

}  // namespace
}  // namespace kvt::cli
