// Rewrites parts of a frame and makes its checksums right again, as someone hostile would.
#ifndef KVARTET_TESTS_UNIT_CODEC_RESEAL_H_
#define KVARTET_TESTS_UNIT_CODEC_RESEAL_H_

#include <vector>

#include "codec/frame_header.h"
#include "codec/frame_prefix.h"
#include "cpu/hash_copy.h"

namespace kvt::test {

inline constexpr size_t kPrefixChecksumAt = 56, kHeaderChecksumAt = 48, kHeaderLengthAt = 16;

// After a change of the prefix or of the header's bytes in place.
inline void Reseal(std::vector<uint8_t>& frame) {
  const auto length =
      std::min<uint64_t>(LoadLe<uint32_t>(frame.data() + kHeaderLengthAt), frame.size() - kFramePrefixBytes);
  StoreLe<uint64_t>(frame.data() + kHeaderChecksumAt,
                    kernels::Hash(frame.data() + kFramePrefixBytes, length));
  StoreLe<uint64_t>(frame.data() + kPrefixChecksumAt, kernels::Hash(frame.data(), kPrefixChecksumAt));
}

// The frame with another header over the same payload bytes.
inline std::vector<uint8_t> WithHeader(const std::vector<uint8_t>& frame, const FrameHeader& header,
                                       uint64_t old_payload_offset) {
  const std::string bytes = EncodeHeader(header);
  const uint64_t offset = AlignFrame(kFramePrefixBytes + bytes.size());
  std::vector<uint8_t> result(offset);
  result.insert(result.end(), frame.begin() + static_cast<int64_t>(old_payload_offset), frame.end());
  WriteFrameFront(bytes, result.size() - offset, !header.position_offsets.empty(), result.data());
  return result;
}

}  // namespace kvt::test

#endif  // KVARTET_TESTS_UNIT_CODEC_RESEAL_H_
