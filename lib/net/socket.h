// Sockets of a node: listening, connecting and accepting, all non-blocking. Stateless; thread-safe.
#ifndef KVARTET_LIB_NET_SOCKET_H_
#define KVARTET_LIB_NET_SOCKET_H_

#include <sys/types.h>

#include "net/address.h"
#include "net/fd.h"

namespace kvt::net {

// A listening socket. A Unix socket's file goes with it, unless someone else's is there by then.
class Listener {
 public:
  // KVT_ERR_ADDRESS_IN_USE, KVT_ERR_PERMISSION and others name the place. A Unix socket that nobody listens
  // on any more is replaced.
  static StatusOr<Listener> Open(const Place& place);
  Listener() = default;
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener() { Close(); }

  int fd() const { return fd_.get(); }
  const std::string& url() const { return url_; }
  // The next connection; an invalid descriptor when none waits; KVT_ERR_LIMIT when descriptors have run out.
  StatusOr<Fd> Accept() const;
  void Close();

 private:
  Fd fd_;
  std::string url_, path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Begins to connect; writable when the attempt has ended, ConnectResult says how.
StatusOr<Fd> StartConnect(const Address& address);
// KVT_ERR_PEER_DEAD names the address, `text`, and the reason.
Status ConnectResult(int fd, absl::string_view text);

}  // namespace kvt::net

#endif  // KVARTET_LIB_NET_SOCKET_H_
