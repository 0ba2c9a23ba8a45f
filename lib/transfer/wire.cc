#include "transfer/wire.h"

namespace kvt::transfer {
namespace {

using net::Message;
using net::MessageType;

template <typename Table>
std::string Finish(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<Table> root) {
  builder.Finish(root);
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

Message Control(MessageType type, std::string control, bool urgent) {
  Message message;
  message.type = type;
  message.control = std::move(control);
  message.urgent = urgent;
  return message;
}

flatbuffers::Offset<flatbuffers::Vector<uint8_t>> KeyBytes(flatbuffers::FlatBufferBuilder& builder,
                                                           absl::Span<const Key> keys) {
  static_assert(sizeof(Key) == KVT_KEY_BYTES);
  return builder.CreateVector(reinterpret_cast<const uint8_t*>(keys.data()), keys.size() * KVT_KEY_BYTES);
}

template <size_t N>
bool Equal(const flatbuffers::Vector<uint8_t>* left, const std::array<uint8_t, N>& right) {
  return left != nullptr && left->size() == N && std::memcmp(left->data(), right.data(), N) == 0;
}

std::string HexOf(const flatbuffers::Vector<uint8_t>* bytes) {
  if (bytes == nullptr) return "absent";
  return Hex(Bytes(bytes->data(), std::min<size_t>(bytes->size(), 32)));
}

}  // namespace

StatusOr<std::vector<Key>> ReadKeys(const flatbuffers::Vector<uint8_t>* bytes, absl::string_view name) {
  if (bytes == nullptr || bytes->size() == 0 || bytes->size() % KVT_KEY_BYTES != 0)
    return Error(KVT_ERR_CORRUPT,
                 absl::StrCat("message ", name, ": keys has ", bytes == nullptr ? 0 : bytes->size(),
                              " bytes, not a multiple of ", KVT_KEY_BYTES));
  std::vector<Key> keys(bytes->size() / KVT_KEY_BYTES);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = Key::From(bytes->data() + i * KVT_KEY_BYTES);
  return keys;
}

Status CompareHello(const Identity& own, const wire::Hello& peer, Counters* counters) {
  if (peer.version_max() < own.version_min || peer.version_min() > own.version_max) {
    return Error(KVT_ERR_VERSION,
                 absl::StrCat("wire version: one side speaks ", peer.version_min(), " to ",
                              peer.version_max(), ", the other ", own.version_min, " to ", own.version_max));
  }
  if (!Equal(peer.model(), own.model)) {
    counters->refused_model.fetch_add(1, std::memory_order_relaxed);
    return Error(KVT_ERR_MISMATCH, absl::StrCat("model: one side has fingerprint ", HexOf(peer.model()),
                                                ", the other ", Hex(own.model)));
  }
  if (!Equal(peer.namespace_digest(), own.namespace_digest)) {
    counters->refused_namespace.fetch_add(1, std::memory_order_relaxed);
    return Error(KVT_ERR_MISMATCH,
                 absl::StrCat("namespace: one side has digest ", HexOf(peer.namespace_digest()),
                              ", the other ", Hex(own.namespace_digest)));
  }
  return OkStatus();
}

std::string HelloControl(const Identity& identity) {
  flatbuffers::FlatBufferBuilder builder;
  const auto model = builder.CreateVector(identity.model.data(), identity.model.size());
  const auto digest =
      builder.CreateVector(identity.namespace_digest.data(), identity.namespace_digest.size());
  return Finish(builder, wire::CreateHello(builder, identity.version_min, identity.version_max, model, digest,
                                           identity.stall_ms, identity.max_frame_bytes));
}

Message GoodbyeMessage(const Status& reason) {
  flatbuffers::FlatBufferBuilder builder;
  const absl::string_view text = reason.message().substr(0, 512);
  const auto offset = builder.CreateString(text.data(), text.size());
  return Control(MessageType::kGoodbye, Finish(builder, wire::CreateGoodbye(builder, CodeOf(reason), offset)),
                 true);
}

Status GoodbyeReason(const wire::Goodbye& goodbye) {
  const std::string text =
      absl::StrCat("the peer says: ", goodbye.text() == nullptr ? "" : goodbye.text()->str().substr(0, 512));
  switch (goodbye.code()) {
    case KVT_ERR_VERSION:
    case KVT_ERR_MISMATCH:
    case KVT_ERR_CORRUPT:
    case KVT_ERR_LIMIT:
      return Error(goodbye.code(), text);
    default:
      return Error(KVT_ERR_PEER_DEAD, text);
  }
}

Message HeartbeatMessage() { return Control(MessageType::kHeartbeat, "", true); }

Message PullMessage(uint64_t request, uint64_t slot_bytes, absl::Span<const Key> keys) {
  flatbuffers::FlatBufferBuilder builder(keys.size() * KVT_KEY_BYTES + 128);
  const auto bytes = KeyBytes(builder, keys);
  return Control(MessageType::kPull, Finish(builder, wire::CreatePull(builder, request, slot_bytes, bytes)),
                 true);
}

Message PullStreamMessage(uint64_t request, const Key& key) {
  flatbuffers::FlatBufferBuilder builder;
  const auto bytes = KeyBytes(builder, absl::MakeConstSpan(&key, 1));
  return Control(MessageType::kPullStream, Finish(builder, wire::CreatePullStream(builder, request, bytes)),
                 true);
}

Message FramesMessage(uint64_t request, const std::vector<wire::FrameItem>& items) {
  flatbuffers::FlatBufferBuilder builder;
  const auto offset = builder.CreateVectorOfStructs(items);
  Message message =
      Control(MessageType::kFrames, Finish(builder, wire::CreateFrames(builder, request, offset)), false);
  message.tag = request;
  return message;
}

Message CancelMessage(MessageType type, uint64_t request) {
  flatbuffers::FlatBufferBuilder builder;
  return Control(type, Finish(builder, wire::CreateCancel(builder, request)), true);
}

Message EndMessage(uint64_t request, kvt_status_t status) {
  flatbuffers::FlatBufferBuilder builder;
  Message message =
      Control(MessageType::kEnd, Finish(builder, wire::CreateEnd(builder, request, status)), false);
  message.tag = request;
  return message;
}

Message PushMessage(uint64_t request, uint32_t first, absl::Span<const Key> keys,
                    absl::Span<const uint64_t> lengths) {
  flatbuffers::FlatBufferBuilder builder;
  const auto bytes = KeyBytes(builder, keys);
  const auto sizes = builder.CreateVector(lengths.data(), lengths.size());
  Message message = Control(MessageType::kPush,
                            Finish(builder, wire::CreatePush(builder, request, first, bytes, sizes)), false);
  message.tag = request;
  return message;
}

Message PushResultsMessage(uint64_t request, uint32_t first, absl::Span<const kvt_status_t> statuses) {
  flatbuffers::FlatBufferBuilder builder;
  const auto offset = builder.CreateVector(statuses.data(), statuses.size());
  return Control(MessageType::kPushResults,
                 Finish(builder, wire::CreatePushResults(builder, request, first, offset)), true);
}

kvt_status_t ItemStatus(int32_t code) {
  switch (code) {
    case KVT_OK:
    case KVT_ERR_BUFFER_TOO_SMALL:
    case KVT_ERR_UNAVAILABLE:
    case KVT_ERR_NOT_FOUND:
    case KVT_ERR_CLOSED:
    case KVT_ERR_CANCELLED:
    case KVT_ERR_CORRUPT:
    case KVT_ERR_MISMATCH:
    case KVT_ERR_VERSION:
    case KVT_ERR_IO:
    case KVT_ERR_DISK_FULL:
    case KVT_ERR_OUT_OF_MEMORY:
    case KVT_ERR_LIMIT:
      return code;
    default:
      return KVT_ERR_IO;
  }
}

}  // namespace kvt::transfer
