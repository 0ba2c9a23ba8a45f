#include "kvartet/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "kvartet/library.h"

namespace kvt::cli {

Channel::~Channel() {
  if (fd_ >= 0) close(fd_);
}

void Channel::Send(const Json& message) {
  const std::string line = message.dump() + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t sent = send(fd_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0)
      throw Failure(std::string("the other process of the demo is gone: ") + std::strerror(errno));
    done += static_cast<size_t>(sent);
  }
}

std::optional<Json> Channel::Receive(int timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    if (const size_t newline = buffer_.find('\n'); newline != std::string::npos) {
      const std::string line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      Json message = Json::parse(line, nullptr, false);
      if (message.is_discarded())
        throw Failure("a process of the demo sent what is not JSON: " + line.substr(0, 200));
      return message;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd poll_fd = {fd_, POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&poll_fd, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0)
      throw Failure("a process of the demo gave no sign for " + std::to_string(timeout_ms) + " ms",
                    KVT_ERR_TIMEOUT);
    char chunk[65536];
    const ssize_t got = recv(fd_, chunk, sizeof chunk, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    buffer_.append(chunk, static_cast<size_t>(got));
  }
}

}  // namespace kvt::cli
