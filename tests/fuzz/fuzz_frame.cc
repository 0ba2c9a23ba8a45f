// Parsing, verifying and describing any bytes, as they are and with checksums made right.
#include <algorithm>
#include <vector>

#include "codec/describe.h"
#include "unit/codec/reseal.h"

namespace {

void Read(kvt::Bytes frame) {
  const bool inspected = kvt::InspectFrame(frame).ok();
  const bool verified = kvt::VerifyFrame(frame, nullptr).ok();
  const bool described = kvt::DescribeFrame(frame).ok();
  // What holds for the whole holds for its parts.
  if (inspected != described || (verified && !inspected)) __builtin_trap();
  const auto length = kvt::FrameLength(frame.first(std::min(frame.size(), kvt::kFramePrefixBytes)));
  if (inspected && *length != frame.size()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Read(kvt::Bytes(data, size));
  if (size < kvt::kFramePrefixBytes) return 0;
  std::vector<uint8_t> frame(data, data + size);
  kvt::test::Reseal(frame);
  Read(kvt::Bytes(frame));
  return 0;
}
