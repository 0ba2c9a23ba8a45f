#include "codec/frame_prefix.h"

#include "codec/frame_header.h"
#include "cpu/hash_copy.h"
#include "kvartet/codec.h"

namespace kvt {
namespace {

constexpr char kMagic[8] = {'K', 'V', 'T', 'F', 'R', 'A', 'M', 'E'};

// Offsets of the fields.
constexpr size_t kVersion = 8, kFlags = 12, kHeaderLength = 16, kReserved = 20, kPayloadLength = 24,
                 kReservedTail = 32, kHeaderChecksum = 48, kPrefixChecksum = 56;

// The tokens are selected ones. A reader that does not know the flag must not take them for consecutive.
constexpr uint32_t kFlagSelected = 1;

}  // namespace

uint64_t FramePrefix::PayloadOffset() const { return AlignFrame(kFramePrefixBytes + header_length); }

StatusOr<FramePrefix> ReadFramePrefix(Bytes bytes) {
  if (bytes.size() < kFramePrefixBytes) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: ", bytes.size(),
                                               " bytes are shorter than the prefix of ", kFramePrefixBytes));
  }
  const uint8_t* p = bytes.data();
  if (std::memcmp(p, kMagic, sizeof kMagic) != 0) {
    return Error(KVT_ERR_CORRUPT,
                 absl::StrCat("frame: magic is ", Hex(bytes.first(sizeof kMagic)), ", expected ",
                              Hex(AsBytes(absl::string_view(kMagic, sizeof kMagic)))));
  }
  const auto version = LoadLe<uint32_t>(p + kVersion);
  if (version != kFrameVersion) {
    return Error(KVT_ERR_VERSION,
                 absl::StrCat("frame: format version is ", version, ", this library reads ", kFrameVersion));
  }
  if (kernels::Hash(p, kPrefixChecksum) != LoadLe<uint64_t>(p + kPrefixChecksum))
    return Error(KVT_ERR_CORRUPT, "frame: the prefix does not have its checksum");
  const auto flags = LoadLe<uint32_t>(p + kFlags);
  if ((flags & ~kFlagSelected) != 0) {
    return Error(KVT_ERR_VERSION,
                 absl::StrCat("frame: flags are ", flags, ", this library knows ", kFlagSelected));
  }
  if (LoadLe<uint32_t>(p + kReserved) != 0)
    return Error(KVT_ERR_CORRUPT, "frame: prefix: reserved bytes 20 to 23 are not zero");
  KVT_RETURN_IF_ERROR(CheckZero(bytes.subspan(kReservedTail, kHeaderChecksum - kReservedTail),
                                "frame: prefix: reserved bytes 32 to 47"));
  FramePrefix prefix;
  prefix.selected = flags == kFlagSelected;
  prefix.header_length = LoadLe<uint32_t>(p + kHeaderLength);
  prefix.payload_length = LoadLe<uint64_t>(p + kPayloadLength);
  prefix.header_checksum = LoadLe<uint64_t>(p + kHeaderChecksum);
  if (prefix.header_length == 0 || prefix.header_length > kFrameHeaderBytesMax) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: header length is ", prefix.header_length,
                                               ", expected 1 to ", kFrameHeaderBytesMax));
  }
  if (prefix.payload_length % kFrameAlignment != 0) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: payload length ", prefix.payload_length,
                                               " is not a multiple of ", kFrameAlignment));
  }
  if (prefix.payload_length > KVT_FRAME_BYTES_MAX - prefix.PayloadOffset()) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: payload length ", prefix.payload_length,
                                               " makes a frame longer than ", KVT_FRAME_BYTES_MAX));
  }
  return prefix;
}

void WriteFramePrefix(const FramePrefix& prefix, uint8_t* bytes) {
  std::memset(bytes, 0, kFramePrefixBytes);
  std::memcpy(bytes, kMagic, sizeof kMagic);
  StoreLe<uint32_t>(bytes + kVersion, kFrameVersion);
  StoreLe<uint32_t>(bytes + kFlags, prefix.selected ? kFlagSelected : 0);
  StoreLe<uint32_t>(bytes + kHeaderLength, prefix.header_length);
  StoreLe<uint64_t>(bytes + kPayloadLength, prefix.payload_length);
  StoreLe<uint64_t>(bytes + kHeaderChecksum, prefix.header_checksum);
  StoreLe<uint64_t>(bytes + kPrefixChecksum, kernels::Hash(bytes, kPrefixChecksum));
}

StatusOr<uint64_t> FrameLength(Bytes prefix) {
  KVT_ASSIGN_OR_RETURN(const FramePrefix read, ReadFramePrefix(prefix));
  return read.FrameBytes();
}

}  // namespace kvt
