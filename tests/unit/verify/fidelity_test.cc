// Classification of a start-up probe: the four levels, by bits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kvartet/verifier.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Four rows of three logits: tokens x and y, each at places 0 and 3 of batches of width 4.
struct Probe {
  std::vector<float> alone = {1, 2, 0, 1, 2, 0, 5, 4, -kInf, 5, 4, -kInf};
  std::vector<float> batched = alone;
  std::vector<uint32_t> widths = {4, 4, 4, 4};
  std::vector<uint32_t> places = {0, 3, 0, 3};
  int32_t level = -1;
  float margin = -1;

  kvt_status_t Classify() {
    return kvt_fidelity_classify(alone.data(), batched.data(), 4, 3, widths.data(), places.data(), &level,
                                 &margin);
  }
};

TEST(Fidelity, EqualBitsAreLevelC) {
  Probe probe;
  ASSERT_EQ(probe.Classify(), KVT_OK);
  EXPECT_EQ(probe.level, KVT_FIDELITY_C);
  EXPECT_EQ(probe.margin, 0);
}

TEST(Fidelity, EqualArgmaxIsLevelBWithTwiceTheDifference) {
  Probe probe;
  probe.batched[0] = 1.25f;
  probe.batched[7] = 4.5f;
  ASSERT_EQ(probe.Classify(), KVT_OK);
  EXPECT_EQ(probe.level, KVT_FIDELITY_B);
  EXPECT_EQ(probe.margin, 1.0f);
}

TEST(Fidelity, ASignedZeroIsADifferenceOfBits) {
  Probe probe;
  probe.batched[2] = -0.0f;
  ASSERT_EQ(probe.Classify(), KVT_OK);
  EXPECT_EQ(probe.level, KVT_FIDELITY_B);
  EXPECT_GT(probe.margin, 0);  // a verifier at level B takes it
}

TEST(Fidelity, FlippedArgmaxButEqualAtEveryPlaceIsLevelA) {
  Probe probe;
  for (const size_t row : {0, 1}) probe.batched[row * 3] = 3;
  ASSERT_EQ(probe.Classify(), KVT_OK);
  EXPECT_EQ(probe.level, KVT_FIDELITY_A);
  EXPECT_EQ(probe.margin, 4.0f);
}

TEST(Fidelity, DifferentFromPlaceToPlaceIsNone) {
  Probe probe;
  probe.batched[0] = 3;
  ASSERT_EQ(probe.Classify(), KVT_OK);
  EXPECT_EQ(probe.level, KVT_FIDELITY_N);
}

TEST(Fidelity, PlacesNeverComparedAreNone) {
  Probe probe;
  for (const size_t row : {0, 1}) probe.batched[row * 3] = 3;
  probe.widths = {4, 5, 6, 7};  // no width twice
  ASSERT_EQ(probe.Classify(), KVT_OK);
  EXPECT_EQ(probe.level, KVT_FIDELITY_N);
  probe.widths = {4, 4, 4, 4};
  probe.places = {1, 1, 1, 1};  // no place but one
  ASSERT_EQ(probe.Classify(), KVT_OK);
  EXPECT_EQ(probe.level, KVT_FIDELITY_N);
}

TEST(Fidelity, AnInfiniteDifferenceIsNotLevelB) {
  Probe probe;
  probe.batched[8] = -100;  // was minus infinity; the argmax stays
  ASSERT_EQ(probe.Classify(), KVT_OK);
  EXPECT_EQ(probe.level, KVT_FIDELITY_N);
  EXPECT_TRUE(std::isfinite(probe.margin));
  probe.batched[11] = -100;
  ASSERT_EQ(probe.Classify(), KVT_OK);
  EXPECT_EQ(probe.level, KVT_FIDELITY_A);
}

TEST(Fidelity, BadInputIsNamed) {
  const auto refused = [](const char* part, Probe probe) {
    EXPECT_EQ(probe.Classify(), KVT_ERR_INVALID_ARGUMENT) << part;
    EXPECT_EQ(probe.level, -1);
    char text[KVT_ERROR_TEXT_MAX];
    size_t size = 0;
    kvt_last_error(text, sizeof text, &size);
    EXPECT_NE(std::string(text, size).find(part), std::string::npos) << std::string(text, size);
  };
  Probe probe;
  probe.batched[4] = std::nanf("");
  refused("batched[1][1]", probe);
  probe = Probe();
  probe.alone[11] = std::nanf("");
  refused("alone[3][2]", probe);
  probe = Probe();
  probe.places[2] = 4;
  refused("places[2]", probe);
  probe = Probe();
  probe.widths[2] = 0;
  refused("widths[2]", probe);
  probe = Probe();
  const float* a = probe.alone.data();
  const uint32_t* u = probe.widths.data();
  EXPECT_EQ(kvt_fidelity_classify(a, a, 1, 3, u, probe.places.data(), &probe.level, &probe.margin),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_fidelity_classify(a, a, 4, 0, u, probe.places.data(), &probe.level, &probe.margin),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_fidelity_classify(a, a, 4, ~size_t{0}, u, probe.places.data(), &probe.level, &probe.margin),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_fidelity_classify(nullptr, a, 4, 3, u, probe.places.data(), &probe.level, &probe.margin),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_fidelity_classify(a, a, 4, 3, u, probe.places.data(), nullptr, &probe.margin),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_fidelity_classify(a, a, 4, 3, u, probe.places.data(), &probe.level, nullptr),
            KVT_ERR_INVALID_ARGUMENT);
}

}  // namespace
