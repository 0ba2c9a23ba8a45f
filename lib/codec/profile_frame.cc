#include "codec/profile_frame.h"

#include "base/sha256.h"
#include "codec/frame_header.h"
#include "cpu/hash_copy.h"

namespace kvt {
namespace {

constexpr absl::string_view kKeyLabel = "kvartet profile";

}  // namespace

StatusOr<Key> ProfileKey(const Fingerprint& fingerprint) {
  Sha256 sha;
  sha.Update(AsBytes(kKeyLabel));
  sha.Update(Bytes(fingerprint));
  KVT_ASSIGN_OR_RETURN(const Sha256Digest digest, sha.Finish());
  // No block has 0 tokens, so no block has this key.
  Key key;
  static_assert(sizeof key.bytes >= sizeof digest);
  std::memcpy(key.bytes.data(), digest.data(), digest.size());
  return key;
}

StatusOr<std::string> WrapProfile(Bytes profile, const NamespaceDigest& namespace_digest) {
  KVT_ASSIGN_OR_RETURN(const std::shared_ptr<const Profile> parsed, Profile::Parse(profile));
  FrameHeader header;
  header.model = parsed->facts().model;
  KVT_ASSIGN_OR_RETURN(header.key, ProfileKey(parsed->fingerprint()));
  header.namespace_digest = namespace_digest;
  // One opaque segment of one token, layer and head.
  header.layer_end = header.head_end = header.streams = 1;
  header.element = parsed->facts().element;
  header.codec = std::string(kProfileCodec);
  header.tokens = 1;
  Segment segment;
  segment.layer_end = segment.head_end = 1;
  segment.stored_length = segment.decoded_length = profile.size();
  segment.checksum = kernels::Hash(profile.data(), profile.size());
  header.segments.push_back(segment);
  const std::string front = EncodeHeader(header);
  const uint64_t offset = AlignFrame(kFramePrefixBytes + front.size());
  const uint64_t payload = AlignFrame(profile.size());
  std::string frame(offset + payload, '\0');
  auto* bytes = reinterpret_cast<uint8_t*>(frame.data());
  std::memcpy(bytes + offset, profile.data(), profile.size());
  WriteFrameFront(front, payload, /*selected=*/false, bytes);
  return frame;
}

StatusOr<Bytes> UnwrapProfile(Bytes frame) {
  KVT_ASSIGN_OR_RETURN(const FrameHeader header, ParseFrame(frame));
  if (header.codec != kProfileCodec || header.segments.size() != 1) {
    return Error(KVT_ERR_MISMATCH,
                 absl::StrCat("frame: codec is ", header.codec, " with ", header.segments.size(),
                              " segments, expected profile with 1"));
  }
  const Bytes profile = header.Stored(frame, header.segments[0]);
  if (kernels::Hash(profile.data(), profile.size()) != header.segments[0].checksum)
    return Error(KVT_ERR_CORRUPT, "frame: the profile's bytes do not have the segment's checksum");
  KVT_RETURN_IF_ERROR(CheckZero(header.Padding(frame, header.segments[0]), "frame: padding of the profile"));
  KVT_ASSIGN_OR_RETURN(const std::shared_ptr<const Profile> parsed, Profile::Parse(profile));
  KVT_ASSIGN_OR_RETURN(const Key key, ProfileKey(parsed->fingerprint()));
  if (key != header.key) {
    return Error(KVT_ERR_MISMATCH, absl::StrCat("frame: key is ", header.key.ToString(), ", that of profile ",
                                                Hex(Bytes(parsed->fingerprint())), " is ", key.ToString()));
  }
  return profile;
}

}  // namespace kvt
