// Lookup: finds the address of a host by its name without blocking: in the hosts file, then at the name
// servers, by c-ares.
//
// Belongs to the loop's thread: it has no thread of its own, and nothing of it runs once it is gone.
#ifndef KVARTET_LIB_NET_LOOKUP_H_
#define KVARTET_LIB_NET_LOOKUP_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "net/address.h"
#include "net/loop.h"

struct ares_channeldata;
struct ares_addrinfo;

namespace kvt::net {

class Lookup : public std::enable_shared_from_this<Lookup> {
 public:
  // Called once, in a later round of the loop, unless the lookup is ended before. KVT_ERR_INVALID_ARGUMENT:
  // there is no such host, or it is not loopback and the place lacks insecure=1; KVT_ERR_TIMEOUT: no name
  // server answered; KVT_ERR_PEER_DEAD: they answered, but not the question.
  using Done = std::function<void(StatusOr<Address>)>;

  // `servers`: "address:port,..." instead of the name servers of the system; empty for those.
  static StatusOr<std::shared_ptr<Lookup>> Start(Loop* loop, Place place, const std::string& servers,
                                                 Done done);
  ~Lookup() { End(); }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  // Ends it without an answer.
  void End();

 private:
  Lookup(Loop* loop, Place place, Done done)
      : loop_(loop), place_(std::move(place)), done_(std::move(done)) {}
  Status Ask(const std::string& servers);
  void OnSocket(int fd, bool readable, bool writable);
  void OnAnswer(int code, ares_addrinfo* found);
  StatusOr<Address> Read(int code, const ares_addrinfo* found) const;
  void Process(int readable, int writable);
  void ArmTimer();

  struct Watched {
    Loop::WatchId watch = 0;
    uint32_t events = 0;
  };

  Loop* const loop_;
  const Place place_;
  Done done_;
  ares_channeldata* channel_ = nullptr;
  absl::flat_hash_map<int, Watched> sockets_;
  Loop::TimerId timer_ = 0;
};

}  // namespace kvt::net

#endif  // KVARTET_LIB_NET_LOOKUP_H_
