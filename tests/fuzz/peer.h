// A node's side of one connection whose other end a fuzz target holds: one loop, turned by hand on one
// thread.
#ifndef KVARTET_TESTS_FUZZ_PEER_H_
#define KVARTET_TESTS_FUZZ_PEER_H_

#include <sys/socket.h>

#include <functional>

#include "fuzz/small.h"
#include "transfer/core.h"
#include "transfer/wire.h"

namespace kvt::fuzz {

inline std::shared_ptr<Runtime> MakeRuntime() {
  kvt_runtime_options_t options = {};
  options.struct_size = sizeof options;
  options.threads = 1;
  options.memory_limit_bytes = 1 << 20;
  return *Runtime::Create(options);
}

inline std::shared_ptr<transfer::Core> MakeCore(const std::shared_ptr<Runtime>& runtime) {
  transfer::Identity identity;
  identity.model = SmallModel()->fingerprint();
  identity.max_frame_bytes = 1 << 16;
  return *transfer::Core::Create(runtime, identity);
}

// Handles what is ready, and what that makes ready, without waiting.
inline void TurnLoop(net::Loop* loop) {
  for (int round = 0; round < 3; ++round) {
    loop->Post([] {});
    loop->Turn();
  }
}

inline void TurnUntil(net::Loop* loop, const std::function<bool()>& done) {
  for (int round = 0; round < 100 && !done(); ++round) TurnLoop(loop);
  Require(done());
  TurnLoop(loop);
}

// Reads and drops what has come.
inline void Drain(int fd) {
  uint8_t bytes[4096];
  while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) continue;
}

inline void SendAll(int fd, absl::string_view bytes) {
  // Inputs are shorter than a socket's buffer; a closed one takes nothing.
  [[maybe_unused]] const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

inline void SendHello(const transfer::Core& core, int fd) {
  net::Message hello;
  hello.type = net::MessageType::kHello;
  hello.control = transfer::HelloControl(core.identity);
  SendAll(fd, net::EncodeHead(hello));
}

// Input as messages, each with a good checksum: one byte of type, two of the control part's length, two of
// the payload's, then both. Type 255 is bytes that go out as they are.
inline void SendScript(net::Loop* loop, int fd, Bytes script) {
  constexpr size_t kFront = 5;
  while (script.size() >= kFront) {
    const uint8_t type = script[0];
    const auto control = LoadLe<uint16_t>(script.data() + 1), payload = LoadLe<uint16_t>(script.data() + 3);
    script.remove_prefix(kFront);
    const Bytes head = script.first(std::min<size_t>(control, script.size()));
    script.remove_prefix(head.size());
    const Bytes body = script.first(std::min<size_t>(payload, script.size()));
    script.remove_prefix(body.size());
    std::string bytes(AsText(head));
    if (type != 255) {
      net::Message message;
      message.type = static_cast<net::MessageType>(type);
      message.control = bytes;
      message.payload.push_back({body, nullptr});
      bytes = net::EncodeHead(message);
    }
    SendAll(fd, absl::StrCat(bytes, AsText(body)));
    TurnLoop(loop);
    Drain(fd);
  }
}

}  // namespace kvt::fuzz

#endif  // KVARTET_TESTS_FUZZ_PEER_H_
