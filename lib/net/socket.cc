#include "net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace kvt::net {
namespace {

StatusOr<Fd> NewSocket(const Address& address) {
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError(errno, "socket", address.text);
  return fd;
}

// TCP buffers are left to the kernel, whose automatic sizing goes beyond what a program may ask for; Unix
// sockets have none, so ask.
void Tune(int fd, int family) {
  const int one = 1, size = 4 << 20;
  if (family != AF_UNIX) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    // A host that is gone without a word is noticed within two minutes even on an idle connection.
    const int idle = 60, interval = 10, count = 6;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  } else {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  }
}

// Whether a Unix socket's file is left over: nobody accepts there. Files of other kinds refuse in the same
// way.
bool IsStale(const Place& place, const Address& address) {
  struct stat status = {};
  if (lstat(place.path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  auto probe = NewSocket(address);
  return probe.ok() && connect(probe->get(), address.get(), address.size) != 0 && errno == ECONNREFUSED;
}

Status Bind(int fd, const Place& place, const Address& address) {
  if (bind(fd, address.get(), address.size) == 0) return OkStatus();
  if (errno == EADDRINUSE && place.is_unix && IsStale(place, address)) {
    unlink(place.path.c_str());
    if (bind(fd, address.get(), address.size) == 0) return OkStatus();
  }
  return ErrnoError(errno, "bind", place.text);
}

}  // namespace

StatusOr<Listener> Listener::Open(const Place& place) {
  KVT_ASSIGN_OR_RETURN(const Address address, Resolve(place));
  Listener listener;
  KVT_ASSIGN_OR_RETURN(listener.fd_, NewSocket(address));
  const int one = 1;
  if (!place.is_unix) setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  KVT_RETURN_IF_ERROR(Bind(listener.fd(), place, address));
  struct stat status = {};
  if (place.is_unix && stat(place.path.c_str(), &status) == 0) {
    listener.path_ = place.path;
    listener.device_ = status.st_dev;
    listener.inode_ = status.st_ino;
  }
  if (listen(listener.fd(), SOMAXCONN) != 0) return ErrnoError(errno, "listen", place.text);
  KVT_ASSIGN_OR_RETURN(listener.url_, BoundUrl(listener.fd(), place));
  return listener;
}

StatusOr<Fd> Listener::Accept() const {
  for (;;) {
    sockaddr_storage from;
    socklen_t size = sizeof from;
    Fd fd(accept4(fd_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      Tune(fd.get(), from.ss_family);
      return fd;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Fd();
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      return Error(KVT_ERR_LIMIT, absl::StrCat("accept on ", url_, ": ", std::strerror(errno)));
    // Any other error belongs to a connection that is gone by now.
    if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) return ErrnoError(errno, "accept", url_);
  }
}

void Listener::Close() {
  if (!fd_.valid()) return;
  struct stat status = {};
  if (!path_.empty() && stat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
      status.st_ino == inode_)
    unlink(path_.c_str());
  fd_.Reset();
}

StatusOr<Fd> StartConnect(const Address& address) {
  KVT_ASSIGN_OR_RETURN(Fd fd, NewSocket(address));
  Tune(fd.get(), address.family());
  if (connect(fd.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) {
    return Error(KVT_ERR_PEER_DEAD, absl::StrCat("connect to ", address.text, ": ", std::strerror(errno)));
  }
  return fd;
}

Status ConnectResult(int fd, absl::string_view text) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) return OkStatus();
  return Error(KVT_ERR_PEER_DEAD, absl::StrCat("connect to ", text, ": ", std::strerror(error)));
}

}  // namespace kvt::net
