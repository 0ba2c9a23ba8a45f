// A frame's header, with prefix and checksums made right: two bytes of the payload's length, then the
// FlatBuffer. What is read is written as something that is read the same.
#include "codec/describe.h"
#include "codec/frame_header.h"
#include "fuzz/small.h"

using kvt::fuzz::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const uint64_t payload = kvt::AlignFrame(kvt::LoadLe<uint16_t>(data));
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  const uint64_t offset = kvt::AlignFrame(kvt::kFramePrefixBytes + bytes.size());
  // At an odd address as well: FlatBuffers wants aligned bytes, and callers' are not.
  for (const size_t skew : {0, 1}) {
    std::vector<uint8_t> memory(skew + offset + payload);
    // Whichever the header is of; the other one is refused.
    kvt::WriteFrameFront(bytes, payload, /*selected=*/true, memory.data() + skew);
    const bool selected = kvt::ParseFrame(kvt::Bytes(memory).subspan(skew)).ok();
    kvt::WriteFrameFront(bytes, payload, /*selected=*/false, memory.data() + skew);
    Require(!selected || !kvt::ParseFrame(kvt::Bytes(memory).subspan(skew)).ok());
    if (selected) kvt::WriteFrameFront(bytes, payload, selected, memory.data() + skew);
    const kvt::Bytes frame = kvt::Bytes(memory).subspan(skew);
    const auto header = kvt::ParseFrame(frame);
    Require(header.ok() == kvt::DescribeFrame(frame).ok());
    if (!header.ok()) continue;
    const std::string written = kvt::EncodeHeader(*header);
    const uint64_t written_offset = kvt::AlignFrame(kvt::kFramePrefixBytes + written.size());
    std::vector<uint8_t> again(written_offset + payload);
    kvt::WriteFrameFront(written, payload, selected, again.data());
    const auto read = kvt::ParseFrame(kvt::Bytes(again));
    Require(read.ok() && kvt::EncodeHeader(*read) == written);
  }
  return 0;
}
