#include "net/message.h"

#include <xxhash.h>

#include "kvartet/transfer.h"

namespace kvt::net {
namespace {

constexpr size_t kChecksumAt = 24;

// Over the control part, seeded with the checksum of the header without its checksum field.
uint64_t Checksum(Bytes head) {
  return XXH3_64bits_withSeed(head.data() + kHeaderBytes, head.size() - kHeaderBytes,
                              XXH3_64bits(head.data(), kChecksumAt));
}

}  // namespace

std::string EncodeHead(const Message& message) {
  uint64_t payload = 0;
  for (const Pinned& part : message.payload) payload += part.bytes.size();
  std::string head;
  head.reserve(kHeaderBytes + message.control.size());
  AppendLe<uint32_t>(&head, kMagic);
  AppendLe<uint16_t>(&head, KVT_WIRE_VERSION);
  AppendLe<uint16_t>(&head, static_cast<uint16_t>(message.type));
  AppendLe<uint32_t>(&head, static_cast<uint32_t>(message.control.size()));
  AppendLe<uint32_t>(&head, 0);
  AppendLe<uint64_t>(&head, payload);
  AppendLe<uint64_t>(&head, 0);
  head += message.control;
  StoreLe<uint64_t>(&head[kChecksumAt], Checksum(AsBytes(head)));
  return head;
}

StatusOr<Header> DecodeHeader(Bytes bytes, uint64_t max_payload) {
  Header header;
  const uint32_t magic = LoadLe<uint32_t>(bytes.data());
  if (magic != kMagic)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message.magic is 0x", absl::Hex(magic, absl::kZeroPad8),
                                               ", not 0x", absl::Hex(kMagic)));
  header.version = LoadLe<uint16_t>(bytes.data() + 4);
  header.type = static_cast<MessageType>(LoadLe<uint16_t>(bytes.data() + 6));
  header.control_bytes = LoadLe<uint32_t>(bytes.data() + 8);
  const uint32_t reserved = LoadLe<uint32_t>(bytes.data() + 12);
  header.payload_bytes = LoadLe<uint64_t>(bytes.data() + 16);
  header.checksum = LoadLe<uint64_t>(bytes.data() + kChecksumAt);
  if (reserved != 0)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message.reserved is ", reserved, ", must be 0"));
  if (header.control_bytes > kMaxControlBytes)
    return Error(KVT_ERR_LIMIT, absl::StrCat("message.control_bytes is ", header.control_bytes,
                                             ", the most is ", kMaxControlBytes));
  if (header.payload_bytes > max_payload)
    return Error(KVT_ERR_LIMIT, absl::StrCat("message.payload_bytes is ", header.payload_bytes,
                                             ", the most is ", max_payload));
  return header;
}

Status CheckHead(const Header& header, Bytes bytes) {
  if (Checksum(bytes) == header.checksum) return OkStatus();
  return Error(KVT_ERR_CORRUPT,
               absl::StrCat("message.checksum of type ", static_cast<int>(header.type), " does not hold"));
}

}  // namespace kvt::net
