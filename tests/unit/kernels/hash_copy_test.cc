#include "cpu/hash_copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace kvt::kernels {
namespace {

std::vector<uint8_t> Random(size_t size) {
  std::mt19937_64 random(size);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

std::vector<const Xxh3Functions*> Builds() {
  std::vector<const Xxh3Functions*> builds = {&kXxh3Baseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) builds.push_back(&kXxh3Avx2);
  if (__builtin_cpu_supports("avx512f")) builds.push_back(&kXxh3Avx512);
#endif
  return builds;
}

// Published with xxHash: the hash of nothing with seed 0.
TEST(HashCopyTest, KnownValue) { EXPECT_EQ(Hash(nullptr, 0), 0x2d06800538d394c2u); }

TEST(HashCopyTest, EveryBuildAgrees) {
  for (const size_t size : {0, 1, 3, 16, 17, 128, 129, 240, 241, 256, 1024, 4097, 100'000}) {
    const std::vector<uint8_t> bytes = Random(size);
    const uint64_t expected = kXxh3Baseline.hash(bytes.data(), size);
    for (const Xxh3Functions* build : Builds()) {
      EXPECT_EQ(build->hash(bytes.data(), size), expected) << build->name << " " << size;
      for (const size_t piece : {1, 63, 64, 300, 5000}) {
        Xxh3State state;
        build->reset(&state);
        for (size_t at = 0; at < size; at += piece)
          build->update(&state, bytes.data() + at, std::min(piece, size - at));
        EXPECT_EQ(build->digest(&state), expected) << build->name << " " << size << " by " << piece;
      }
    }
  }
}

TEST(HashCopyTest, CopiesPiecesOneAfterAnother) {
  const std::vector<uint8_t> bytes = Random(50'000);
  std::vector<uint8_t> copy(bytes.size(), 0);
  HashCopy hash(copy.data());
  hash.Add(bytes.data(), 7);
  hash.Add(bytes.data() + 7, 40'000);
  hash.Add(bytes.data() + 40'007, 0);
  hash.Add(bytes.data() + 40'007, 9'993);
  EXPECT_EQ(copy, bytes);
  EXPECT_EQ(hash.Digest(), Hash(bytes.data(), bytes.size()));
  std::vector<uint8_t> other(bytes.size(), 0);
  EXPECT_EQ(CopyAndHash(other.data(), bytes.data(), bytes.size()), hash.Digest());
  EXPECT_EQ(other, bytes);
}

}  // namespace
}  // namespace kvt::kernels
