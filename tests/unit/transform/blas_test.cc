// What OpenBLAS does wrong for us unless it is kept from it: one work buffer for two threads, and the slowest
// kernels on processors that are newer than itself.
#include "codec/transform/blas.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

extern "C" const char* openblas_get_corename();

namespace kvt::blas {
namespace {

constexpr size_t kSize = 96;

std::vector<float> Pattern(uint32_t seed) {
  std::vector<float> values(kSize * kSize);
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 24) - 0.5f;
  }
  return values;
}

std::vector<float> Product(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> out(kSize * kSize);
  Multiply(kSize, kSize, kSize, {a.data(), kSize}, {b.data(), kSize}, out.data(), kSize);
  return out;
}

TEST(BlasTest, ThreadsDoNotDisturbEachOthersProducts) {
  constexpr int kThreads = 8, kRounds = 2000;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([i, &wrong] {
      const std::vector<float> a = Pattern(static_cast<uint32_t>(i)), b = Pattern(77);
      const std::vector<float> first = Product(a, b);
      for (int round = 0; round < kRounds; ++round) wrong += Product(a, b) != first;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

#if defined(__x86_64__)
TEST(BlasTest, KernelsFollowTheProcessorsFeatures) {
  const std::vector<float> a = Pattern(1);
  Product(a, a);  // OpenBLAS chooses at its first call
  const char* const name = openblas_get_corename();
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd")) {
    EXPECT_STRCASEEQ(name, "SkylakeX");
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    EXPECT_STRCASEEQ(name, "Haswell");
  } else {
    EXPECT_NE(name, nullptr);
  }
}
#endif

}  // namespace
}  // namespace kvt::blas
