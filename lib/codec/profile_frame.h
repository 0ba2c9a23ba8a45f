// A profile as a frame, so that caches and peers keep and move it like any other: codec "profile", one opaque
// segment, a key that its fingerprint gives.
//
// Stateless and thread-safe. Unwrapping is safe on hostile bytes.
#ifndef KVARTET_LIB_CODEC_PROFILE_FRAME_H_
#define KVARTET_LIB_CODEC_PROFILE_FRAME_H_

#include "codec/profile.h"

namespace kvt {

// SHA-256 of "kvartet profile" and the fingerprint, of 0 tokens.
StatusOr<Key> ProfileKey(const Fingerprint& fingerprint);

// The profile is checked first.
StatusOr<std::string> WrapProfile(Bytes profile, const NamespaceDigest& namespace_digest);

// The profile inside of a frame, checked whole. KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_MISMATCH (a frame
// of something else, or under the key of another profile).
StatusOr<Bytes> UnwrapProfile(Bytes frame);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_PROFILE_FRAME_H_
