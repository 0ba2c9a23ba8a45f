#include "cpu/hash_copy.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace kvt::kernels {
namespace {

// Small enough to stay in a 32 KiB first-level cache between the copy and the hash.
constexpr size_t kChunk = 16 * 1024;

}  // namespace

struct HashCopy::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

uint64_t Hash(const void* data, size_t size) { return XXH3_64bits(data, size); }

HashCopy::HashCopy(void* to) : to_(static_cast<uint8_t*>(to)), state_(new State) {
  if (state_->xxh == nullptr) {
    delete state_;
    throw std::bad_alloc();
  }
  XXH3_64bits_reset(state_->xxh);
}

HashCopy::~HashCopy() { delete state_; }

void HashCopy::Add(const void* data, size_t size) {
  const auto* from = static_cast<const uint8_t*>(data);
  while (size != 0) {
    const size_t piece = std::min(size, kChunk);
    XXH3_64bits_update(state_->xxh, from, piece);
    if (to_ != nullptr) {
      std::memcpy(to_, from, piece);
      to_ += piece;
    }
    from += piece;
    size -= piece;
  }
}

uint64_t HashCopy::Digest() const { return XXH3_64bits_digest(state_->xxh); }

uint64_t CopyAndHash(void* to, const void* from, size_t size) {
  HashCopy copy(to);
  copy.Add(from, size);
  return copy.Digest();
}

}  // namespace kvt::kernels
