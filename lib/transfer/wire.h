// Control parts of messages: written from and read into plain values. Reading verifies the FlatBuffer first.
// Stateless and thread-safe.
#ifndef KVARTET_LIB_TRANSFER_WIRE_H_
#define KVARTET_LIB_TRANSFER_WIRE_H_

#include <vector>

#include "schema/generated/wire_generated.h"
#include "transfer/core.h"

namespace kvt::transfer {

// The table of a control part. KVT_ERR_CORRUPT names the message.
template <typename Table>
StatusOr<const Table*> ReadControl(Bytes control, absl::string_view name) {
  flatbuffers::Verifier verifier(control.data(), control.size(), 8, 64);
  if (control.empty() || !verifier.VerifyBuffer<Table>(nullptr))
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message ", name, ": its control part is no such table"));
  return flatbuffers::GetRoot<Table>(control.data());
}

// Whether elements of 8 bytes may be read where they are: FlatBuffers 2.0.8 verifies only where a vector's
// length is.
template <typename T>
bool Aligned(const flatbuffers::Vector<T>& vector) {
  return reinterpret_cast<uintptr_t>(vector.Data()) % sizeof(uint64_t) == 0;
}

// The keys of a vector of bytes; KVT_ERR_CORRUPT when it is absent or no multiple of a key.
StatusOr<std::vector<Key>> ReadKeys(const flatbuffers::Vector<uint8_t>* bytes, absl::string_view name);

// Checks that a peer's Hello can be worked with: KVT_ERR_VERSION, KVT_ERR_MISMATCH name both values. Counts a
// mismatch by its kind.
Status CompareHello(const Identity& own, const wire::Hello& peer, Counters* counters);

std::string HelloControl(const Identity& identity);
net::Message GoodbyeMessage(const Status& reason);
// What a Goodbye means to who receives it: its code where it explains what happened, else KVT_ERR_PEER_DEAD.
Status GoodbyeReason(const wire::Goodbye& goodbye);

net::Message HeartbeatMessage();
net::Message PullMessage(uint64_t request, uint64_t slot_bytes, absl::Span<const Key> keys);
net::Message PullStreamMessage(uint64_t request, const Key& key);
net::Message FramesMessage(uint64_t request, const std::vector<wire::FrameItem>& items);
net::Message CancelMessage(net::MessageType type, uint64_t request);
net::Message EndMessage(uint64_t request, kvt_status_t status);
net::Message PushMessage(uint64_t request, uint32_t first, absl::Span<const Key> keys,
                         absl::Span<const uint64_t> lengths);
net::Message PushResultsMessage(uint64_t request, uint32_t first, absl::Span<const kvt_status_t> statuses);

// A status that a peer reported for one item: KVT_OK and codes that make sense there stay, others become
// KVT_ERR_IO.
kvt_status_t ItemStatus(int32_t code);

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_WIRE_H_
