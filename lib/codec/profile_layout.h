// The bytes of a profile: a prefix of 64 bytes, a FlatBuffers header and the bases, read with the checks that
// keep reading inside the bytes, and the bounds of its numbers.
//
// Stateless and thread-safe.
#ifndef KVARTET_LIB_CODEC_PROFILE_LAYOUT_H_
#define KVARTET_LIB_CODEC_PROFILE_LAYOUT_H_

#include "codec/profile.h"

namespace kvt {

inline constexpr uint64_t kProfilePrefixBytes = 64;
inline constexpr uint64_t kProfileAlignment = 64;

// Within these, nothing that is computed with a profile overflows.
inline constexpr float kAmplitudeMin = 1e-6f, kAmplitudeMax = 1e6f;
inline constexpr float kDeviationMin = 1e-12f, kDeviationMax = 1e12f;
inline constexpr float kLevelMax = 65504;

// Magic, version, lengths and the checksum over the profile's own bytes, whose number it gives; what follows
// them is not looked at.
StatusOr<uint64_t> CheckProfilePrefix(Bytes bytes);

// After CheckProfilePrefix, of own bytes that begin at a multiple of 8. Sizes of vectors and values are as
// found, but every basis lies inside the bytes.
Status ReadProfileFacts(Bytes bytes, ProfileFacts* facts);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_PROFILE_LAYOUT_H_
