// Address: where a URL's place is on the network. Stateless functions; thread-safe.
//
// Without TLS only loopback and Unix sockets are safe, so anything else needs insecure=1 in the URL.
#ifndef KVARTET_LIB_NET_ADDRESS_H_
#define KVARTET_LIB_NET_ADDRESS_H_

#include <sys/socket.h>

#include <string>

#include "base/status.h"

namespace kvt::net {

// A tcp: or unix: URL after checks.
struct Place {
  std::string text;  // the URL without options
  bool is_unix = false;
  std::string path;               // unix
  std::string host, port;         // tcp
  bool insecure = false;          // anything but loopback is allowed
  uint64_t bytes_per_second = 0;  // 0: no limit on what is sent

  // KVT_ERR_INVALID_ARGUMENT names the part that is wrong; KVT_ERR_UNSUPPORTED names the scheme.
  static StatusOr<Place> Parse(absl::string_view url);
};

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  std::string text;  // as a URL without options

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  bool IsLoopback() const;
};

// True when the host is a name, which net/lookup.h finds; not so for numbers and "localhost".
bool NeedsLookup(const Place& place);

// The address of a place that needs no lookup; never blocks. Refuses what is not loopback without insecure=1.
StatusOr<Address> Resolve(const Place& place);

// An address that was found for a place, if it may be used: loopback, or insecure=1.
StatusOr<Address> Admit(const Place& place, const sockaddr* found, socklen_t size);

// The address a socket is bound to, as a URL.
StatusOr<std::string> BoundUrl(int fd, const Place& place);

}  // namespace kvt::net

#endif  // KVARTET_LIB_NET_ADDRESS_H_
