#include "cpu/hash_copy.h"

#include <algorithm>
#include <cstring>

namespace kvt::kernels {
namespace {

// Small enough to stay in a 32 KiB first-level cache between the hash and the copy.
constexpr size_t kChunk = 16 * 1024;

}  // namespace

uint64_t Hash(const void* data, size_t size) { return Xxh3().hash(data, size); }

HashCopy::HashCopy(void* to) : to_(static_cast<uint8_t*>(to)) { Xxh3().reset(&state_); }

void HashCopy::Add(const void* data, size_t size) {
  if (to_ == nullptr) {
    if (size != 0) Xxh3().update(&state_, data, size);
    return;
  }
  AddAndCopy(data, size, to_);
  to_ += size;
}

void HashCopy::AddAndCopy(const void* data, size_t size, void* to) {
  const auto* from = static_cast<const uint8_t*>(data);
  auto* out = static_cast<uint8_t*>(to);
  while (size != 0) {
    const size_t piece = std::min(size, kChunk);
    Xxh3().update(&state_, from, piece);
    std::memcpy(out, from, piece);
    from += piece;
    out += piece;
    size -= piece;
  }
}

uint64_t HashCopy::Digest() const { return Xxh3().digest(&state_); }

uint64_t CopyAndHash(void* to, const void* from, size_t size) {
  HashCopy copy(to);
  copy.Add(from, size);
  return copy.Digest();
}

}  // namespace kvt::kernels
