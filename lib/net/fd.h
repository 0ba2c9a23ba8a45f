// Fd: owns a file descriptor. Not thread-safe.
#ifndef KVARTET_LIB_NET_FD_H_
#define KVARTET_LIB_NET_FD_H_

#include <unistd.h>

#include <utility>

namespace kvt::net {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { Reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace kvt::net

#endif  // KVARTET_LIB_NET_FD_H_
