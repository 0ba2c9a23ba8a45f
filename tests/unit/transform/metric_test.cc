// Metrics of heads: their roots, what is refused, and what a calibration makes of them.
#include "codec/transform/metric.h"

#include "codec/transform/steps.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

constexpr size_t kDim = 5;

// A^T A of random numbers.
std::vector<float> Random(size_t dim, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> a(dim * dim), m(dim * dim, 0.0f);
  for (float& value : a) value = normal(random);
  for (size_t i = 0; i < dim; ++i)
    for (size_t j = 0; j < dim; ++j)
      for (size_t k = 0; k < dim; ++k) m[i * dim + j] += a[k * dim + i] * a[k * dim + j];
  return m;
}

TEST(MetricTest, TheRootSquaredIsTheMatrixAndItsInverseInverts) {
  const std::vector<float> matrix = Random(kDim, 1);
  const auto packed = FactorMetric(matrix.data(), kDim);
  ASSERT_TRUE(packed.ok()) << packed.status();
  ASSERT_EQ(packed->size(), PackedSize(kDim));
  std::vector<float> u(kDim * kDim), inverse(kDim * kDim);
  ASSERT_TRUE(UnpackMetric(packed->data(), kDim, u.data(), inverse.data()));
  float trace = 0;
  for (size_t i = 0; i < kDim; ++i) trace += matrix[i * kDim + i];
  for (size_t i = 0; i < kDim; ++i) {
    for (size_t j = 0; j < kDim; ++j) {
      float square = 0, one = 0;
      for (size_t k = 0; k < kDim; ++k) {
        square += u[k * kDim + i] * u[k * kDim + j];
        one += u[i * kDim + k] * inverse[k * kDim + j];
      }
      const float ridge = i == j ? 1e-3f * trace / kDim : 0.0f;
      EXPECT_NEAR(square, matrix[i * kDim + j] + ridge, 1e-4f);
      EXPECT_NEAR(one, i == j ? 1.0f : 0.0f, 1e-3f);
    }
  }
}

TEST(MetricTest, WhatIsNoMetricIsRefused) {
  const std::vector<float> good = Random(kDim, 2);
  const auto with = [&](size_t at, float value) {
    std::vector<float> matrix = good;
    matrix[at] = value;
    return FactorMetric(matrix.data(), kDim).status();
  };
  EXPECT_EQ(CodeOf(with(7, NAN)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(with(7, INFINITY)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(with(1, good[1] + 5)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(with(12, -3)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(with(0, 1e30f)), KVT_ERR_INVALID_ARGUMENT);
  const std::vector<float> zero(kDim * kDim, 0.0f);
  EXPECT_EQ(CodeOf(FactorMetric(zero.data(), kDim).status()), KVT_ERR_INVALID_ARGUMENT);
}

TEST(MetricTest, ACalibrationSpendsBitsWhereTheMetricPoints) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 400);
  FillCorrelated(*model, &memory, 99);
  const auto calibrator = Calibrated(model);
  // Head 0's first elements count a hundred times as much as the others.
  for (uint32_t layer = 0; layer < 6; ++layer) {
    for (uint32_t stream = 0; stream < 2; ++stream) {
      const uint32_t dim = model->head_dim(stream);
      std::vector<float> matrix(size_t{dim} * dim, 0.0f);
      for (uint32_t e = 0; e < dim; ++e) matrix[e * dim + e] = e < 8 ? 100.0f : 1.0f;
      ASSERT_TRUE(calibrator->SetMetric(stream, layer, 0, matrix).ok());
    }
  }
  const auto profile = calibrator->Finish();
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto error_of = [&](const std::string& bytes, const char* name) {
    const auto codec = CreateTransform(model, bytes, 16, name);
    EXPECT_TRUE(codec.ok()) << codec.status();
    const auto frame = Encode(**codec, memory.view(), MakeSpec(memory.view()));
    Memory back(model, Layout::kDense, KVT_ELEMENT_F16, 400);
    EXPECT_TRUE((*codec)->Decode(Bytes(frame), MakeSpec(back.view()), back.view()).ok());
    double error = 0;
    for (uint64_t token = 0; token < 400; ++token) {
      for (uint32_t e = 0; e < 8; ++e) {
        const double miss = double{memory.Get(2, 1, token, 0, e)} - double{back.Get(2, 1, token, 0, e)};
        error += miss * miss;
      }
    }
    return error;
  };
  EXPECT_LT(2 * error_of(*profile, "transform"), error_of(SharedProfile(), "transform"));
  EXPECT_LT(2 * error_of(*profile, "dense"), error_of(SharedProfile(), "dense"));
}

TEST(MetricTest, ACalibrationRefusesPlacesAndWeightsItHasNot) {
  const auto model = MakeModel(KvShape());
  const auto calibrator = *Calibrator::Create(model, {});
  const std::vector<float> matrix = Random(32, 3);
  EXPECT_TRUE(calibrator->SetMetric(0, 5, 1, matrix).ok());
  EXPECT_EQ(CodeOf(calibrator->SetMetric(2, 0, 0, matrix)), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(CodeOf(calibrator->SetMetric(0, 6, 0, matrix)), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(CodeOf(calibrator->SetMetric(0, 0, 2, matrix)), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(CodeOf(calibrator->SetMetric(1, 0, 0, matrix)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_TRUE(calibrator->SetWeight(1, 3, 0.5f).ok());
  EXPECT_EQ(CodeOf(calibrator->SetWeight(1, 3, 0)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(calibrator->SetWeight(1, 3, NAN)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(calibrator->SetWeight(1, 6, 1)), KVT_ERR_OUT_OF_RANGE);
}

TEST(StepsTest, SixteenthsAreThoseBelow) {
  for (int32_t step = -kStepMost; step <= kStepMost; ++step) {
    EXPECT_EQ(SixteenthsOf(StepOf(step) * 1.0001f), step) << step;
    EXPECT_EQ(SixteenthsOf(StepOf(step) * 1.02f), step) << step;
  }
}

}  // namespace
}  // namespace kvt::test
