// Copying and checksumming in one pass over memory.
#ifndef KVARTET_KERNELS_CPU_HASH_COPY_H_
#define KVARTET_KERNELS_CPU_HASH_COPY_H_

#include <cstddef>
#include <cstdint>

#include "cpu/xxh3.h"

namespace kvt::kernels {

// XXH3-64, seed 0, of `size` bytes.
uint64_t Hash(const void* data, size_t size);

// Hash() of a sequence of pieces; `to` receives them one after another unless it is null. The data is read
// from memory once.
class HashCopy {
 public:
  explicit HashCopy(void* to);
  HashCopy(const HashCopy&) = delete;
  HashCopy& operator=(const HashCopy&) = delete;
  void Add(const void* data, size_t size);
  // Adds a piece and copies it to `to` instead of to the constructor's destination.
  void AddAndCopy(const void* data, size_t size, void* to);
  uint64_t Digest() const;

 private:
  uint8_t* to_;
  Xxh3State state_;
};

// memcpy and Hash() of the bytes that were copied (the hash is taken of the copy's source while it is in the
// nearest cache).
uint64_t CopyAndHash(void* to, const void* from, size_t size);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_HASH_COPY_H_
