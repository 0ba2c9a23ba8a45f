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

TEST(QualityMethods, EachCodecHasItsRatios) {
  const std::vector<QualityMethod> methods = ParseMethods({"dense", "dense@96", "kvtc", "kvtc@64"});
  EXPECT_EQ(methods[0].label, "dense@20");
  EXPECT_EQ(methods[1].ratio, 96u);
  EXPECT_EQ(methods[2].label, "kvtc@16");
  EXPECT_TRUE(methods[3].NeedsProfile());
  EXPECT_THAT(Refusal({"dense@7"}), HasSubstr("'dense@7': the ratio must be a whole number from 8 to 96"));
  EXPECT_THAT(Refusal({"kvtc@97"}), HasSubstr("'kvtc@97': the ratio must be a whole number from 4 to 96"));
}

TEST(QualityMethods, WordsOfDense) {
  const std::vector<QualityMethod> methods =
      ParseMethods({"dense@40", "dense@40:finer", "dense@40:plain", "dense:plain+int8"});
  EXPECT_TRUE(methods[0].importance);
  EXPECT_TRUE(methods[0].KeepsExemptRaw());
  EXPECT_EQ(methods[0].exempt, static_cast<uint32_t>(KVT_EXEMPT_RAW));
  EXPECT_EQ(methods[1].label, "dense@40:finer");
  EXPECT_EQ(methods[1].exempt, static_cast<uint32_t>(KVT_EXEMPT_FINER));
  EXPECT_TRUE(methods[1].importance);
  EXPECT_EQ(methods[2].label, "dense@40:plain");
  EXPECT_FALSE(methods[2].importance);
  EXPECT_EQ(methods[3].label, "dense@20:int8+plain");
  EXPECT_FALSE(methods[3].KeepsExemptRaw());
  EXPECT_EQ(methods[3].quantiser, 0u);
  const std::vector<QualityMethod> scalar = ParseMethods({"dense:scalar", "dense@40:scalar+finer+plain"});
  EXPECT_EQ(scalar[0].label, "dense@20:scalar");
  EXPECT_EQ(scalar[0].quantiser, static_cast<uint32_t>(KVT_QUANTISER_SCALAR));
  EXPECT_TRUE(scalar[0].importance);
  EXPECT_EQ(scalar[1].label, "dense@40:finer+plain+scalar");
  EXPECT_FALSE(scalar[1].importance);
  for (const char* text : {"dense:", "dense:fine", "dense:raw+int8", "dense:plain+plain", "dense:plain+",
                           "dense:+plain", "dense:plain:raw", "dense:scalar+scalar"}) {
    EXPECT_THAT(Refusal({text}), HasSubstr("the words after the colon must be")) << text;
  }
  EXPECT_THAT(Refusal({"kivi4:plain"}), HasSubstr("the codec kivi4 takes no words"));
  EXPECT_THAT(Refusal({"dense@40:raw", "dense@40"}), HasSubstr("dense@40 is named twice"));
  EXPECT_THAT(Refusal({":plain"}), HasSubstr("names no codec"));
}

TEST(QualityMethods, NamesWithoutRatio) {
  const std::vector<std::string> names = {"cachegen", "nested",     "kivi8",   "fp8",
                                          "fp8_e5m2", "rotated4v2", "lossless"};
  const std::vector<QualityMethod> methods = ParseMethods(names);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(methods[i].label, names[i]);
    EXPECT_FALSE(methods[i].NeedsProfile());
  }
}

TEST(QualityMethods, Papers) {
  EXPECT_THAT(PublishedAs("kivi2"), HasSubstr("2402.02750"));
  EXPECT_THAT(PublishedAs("rotated4v2"), HasSubstr("2504.19874"));
  EXPECT_THAT(PublishedAs("kvtc"), HasSubstr("2511.01815"));
  EXPECT_THAT(PublishedAs("cachegen"), HasSubstr("2310.07240"));
  EXPECT_EQ(PublishedAs("dense"), "");
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
