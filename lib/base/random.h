// SplitMix64 (Steele, Lea and Flood, 2014): a sequence that is the same everywhere, as the standard's
// distributions are not.
//
// Stateless and thread-safe.
#ifndef KVARTET_LIB_BASE_RANDOM_H_
#define KVARTET_LIB_BASE_RANDOM_H_

#include <cstdint>

namespace kvt {

inline constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15;

inline uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The next number of the sequence that `state` is in.
inline uint64_t SplitMix64(uint64_t* state) { return Mix64(*state += kSplitMixStep); }

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_RANDOM_H_
