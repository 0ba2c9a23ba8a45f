// Message framing: a fixed header, a FlatBuffers control part, an optional payload. docs/wire-protocol.md is
// the reference.
//
// The header's layout and the types kHello and kGoodbye are the same in every wire version, so that two
// versions can tell each other so. Stateless and thread-safe.
#ifndef KVARTET_LIB_NET_MESSAGE_H_
#define KVARTET_LIB_NET_MESSAGE_H_

#include <memory>

#include "absl/container/inlined_vector.h"
#include "base/bytes.h"
#include "base/status.h"

namespace kvt::net {

enum class MessageType : uint16_t {
  kHello = 1,
  kGoodbye = 2,
  kHeartbeat = 3,
  kPull = 10,
  kFrames = 11,
  kCancel = 12,
  kEnd = 13,
  kPullStream = 14,
  kCancelled = 15,
  kPush = 20,
  kPushResults = 21,
};

inline constexpr size_t kHeaderBytes = 32;
inline constexpr uint32_t kMaxControlBytes = 1u << 20;
inline constexpr uint32_t kMagic = 0x5754564b;  // "KVTW"

struct Header {
  uint16_t version = 0;
  MessageType type{};
  uint32_t control_bytes = 0;
  uint64_t payload_bytes = 0;
  uint64_t checksum = 0;
};

// Bytes that stay valid and unchanged while `pin` lives; without a pin the sender of the message sees to it.
struct Pinned {
  Bytes bytes;
  std::shared_ptr<const void> pin;
};

struct Message {
  MessageType type{};
  std::string control;
  absl::InlinedVector<Pinned, 1> payload;
  uint64_t tag = 0;     // what a sender may take back by
  bool urgent = false;  // goes before messages that are not
};

// Header and control part as they go over the wire.
std::string EncodeHead(const Message& message);

// Checks magic, reserved bits and the limits on lengths. `max_payload`: longest payload taken.
StatusOr<Header> DecodeHeader(Bytes bytes, uint64_t max_payload);

// Checks the checksum over header and control; `bytes` holds both.
Status CheckHead(const Header& header, Bytes bytes);

}  // namespace kvt::net

#endif  // KVARTET_LIB_NET_MESSAGE_H_
