// Block hashes as NVIDIA Dynamo and SMG compute them. Stateless.
#include <xxhash.h>

#include "key/key.h"

namespace kvt {
namespace {

constexpr uint64_t kSeed = 1337;

}  // namespace

std::vector<uint64_t> BlockHashes(absl::Span<const int32_t> tokens, uint32_t block_tokens, Bytes adapter,
                                  Bytes ns) {
  uint64_t seed = kSeed;
  if (!adapter.empty()) seed += XXH3_64bits_withSeed(adapter.data(), adapter.size(), 0);
  if (!ns.empty()) seed += XXH3_64bits_withSeed(ns.data(), ns.size(), 1);
  std::vector<uint64_t> hashes(tokens.size() / block_tokens);
  for (size_t i = 0; i < hashes.size(); ++i) {
    const uint64_t local =
        XXH3_64bits_withSeed(tokens.data() + i * block_tokens, block_tokens * sizeof(int32_t), seed);
    if (i == 0) {
      hashes[i] = local;
    } else {
      const uint64_t pair[2] = {hashes[i - 1], local};
      hashes[i] = XXH3_64bits_withSeed(pair, sizeof pair, kSeed);
    }
  }
  return hashes;
}

}  // namespace kvt
