// One wire message, header and control part: the header as it is, then the message with its length and
// checksum made right, whose control part is read as its type says, at the alignment that a channel gives it.
#include "fuzz/small.h"
#include "transfer/wire.h"

namespace {

using kvt::fuzz::Require;
using kvt::net::MessageType;
namespace transfer = kvt::transfer;
namespace wire = kvt::wire;

template <typename Table, typename Body>
void With(kvt::Bytes control, const Body& body) {
  const auto table = transfer::ReadControl<Table>(control, "fuzzed");
  if (table.ok()) body(**table);
}

// Keys that are read are written as they were.
void ReadKeys(const flatbuffers::Vector<uint8_t>* bytes) {
  const auto keys = transfer::ReadKeys(bytes, "fuzzed");
  if (keys.ok()) Require(std::memcmp(keys->data(), bytes->data(), bytes->size()) == 0);
}

void ReadControlPart(MessageType type, kvt::Bytes control) {
  switch (type) {
    case MessageType::kHello:
      With<wire::Hello>(control, [](const wire::Hello& hello) {
        transfer::Counters counters;
        (void)transfer::CompareHello(transfer::Identity(), hello, &counters);
      });
      return;
    case MessageType::kGoodbye:
      With<wire::Goodbye>(control, [](const wire::Goodbye& goodbye) {
        const kvt::Status reason = transfer::GoodbyeReason(goodbye);
        Require(!reason.ok() && reason.message().size() < 1024);
        (void)transfer::GoodbyeMessage(reason);
      });
      return;
    case MessageType::kPull:
      With<wire::Pull>(control, [](const wire::Pull& pull) { ReadKeys(pull.keys()); });
      return;
    case MessageType::kPullStream:
      With<wire::PullStream>(control, [](const wire::PullStream& pull) { ReadKeys(pull.key()); });
      return;
    case MessageType::kFrames:
      With<wire::Frames>(control, [](const wire::Frames& frames) {
        if (frames.items() == nullptr || !transfer::Aligned(*frames.items())) return;
        for (const wire::FrameItem* item : *frames.items()) (void)transfer::ItemStatus(item->status());
      });
      return;
    case MessageType::kPush:
      With<wire::Push>(control, [](const wire::Push& push) {
        ReadKeys(push.keys());
        if (push.lengths() == nullptr || !transfer::Aligned(*push.lengths())) return;
        uint64_t total = 0;
        for (const uint64_t length : *push.lengths()) total ^= length;
        Require(total != UINT64_MAX || push.lengths()->size() != 0);
      });
      return;
    case MessageType::kPushResults:
      With<wire::PushResults>(control, [](const wire::PushResults& results) {
        if (results.statuses() == nullptr) return;
        for (const int32_t status : *results.statuses()) (void)transfer::ItemStatus(status);
      });
      return;
    default:
      With<wire::Cancel>(control, [](const wire::Cancel& cancel) { (void)cancel.request(); });
      With<wire::End>(control, [](const wire::End& end) { (void)transfer::ItemStatus(end.status()); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kvt::net::kHeaderBytes) return 0;
  const auto header = kvt::net::DecodeHeader(kvt::Bytes(data, kvt::net::kHeaderBytes), uint64_t{1} << 30);
  if (header.ok() && header->control_bytes <= size - kvt::net::kHeaderBytes)
    (void)kvt::net::CheckHead(*header, kvt::Bytes(data, kvt::net::kHeaderBytes + header->control_bytes));
  kvt::net::Message message;
  message.type = static_cast<MessageType>(kvt::LoadLe<uint16_t>(data + 6));
  message.control.assign(reinterpret_cast<const char*>(data) + kvt::net::kHeaderBytes,
                         size - kvt::net::kHeaderBytes);
  if (message.control.size() > kvt::net::kMaxControlBytes) return 0;
  const std::string head = kvt::net::EncodeHead(message);
  const auto sealed = kvt::net::DecodeHeader(kvt::AsBytes(head).first(kvt::net::kHeaderBytes), 0);
  Require(sealed.ok() && sealed->type == message.type && sealed->control_bytes == message.control.size());
  Require(kvt::net::CheckHead(*sealed, kvt::AsBytes(head)).ok());
  std::vector<uint64_t> aligned(message.control.size() / sizeof(uint64_t) + 1);
  std::memcpy(aligned.data(), message.control.data(), message.control.size());
  ReadControlPart(message.type,
                  kvt::Bytes(reinterpret_cast<const uint8_t*>(aligned.data()), message.control.size()));
  return 0;
}
