// A line of JSON each way between the demo's processes, over one end of a socket pair. One thread an end.
#ifndef KVARTET_TOOLS_KVARTET_CHANNEL_H_
#define KVARTET_TOOLS_KVARTET_CHANNEL_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace kvt::cli {

using Json = nlohmann::ordered_json;

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  Channel(Channel&& other) noexcept : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}
  Channel& operator=(Channel&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~Channel();

  // Throws Failure when the other end is gone.
  void Send(const Json& message);
  // The next message; nothing when the other end is gone. Throws Failure when none came in `timeout_ms`, or
  // it is not JSON.
  std::optional<Json> Receive(int timeout_ms);

  // Whether Receive has a message without reading: the descriptor is then silent about it.
  bool HasMessage() const { return buffer_.find('\n') != std::string::npos; }

  int fd() const { return fd_; }

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_CHANNEL_H_
