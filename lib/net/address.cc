#include "net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/url.h"

namespace kvt::net {
namespace {

Status SplitHostPort(absl::string_view rest, absl::string_view url, Place* place) {
  const size_t colon = rest.rfind(':');
  absl::string_view host = colon == absl::string_view::npos ? rest : rest.substr(0, colon);
  uint32_t port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(colon + 1), &port) || port > 65535)
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("url \"", url, "\" has no port from 0 to 65535 after its host"));
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]"))
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("url \"", url, "\" lacks the ']' of its host"));
  if (host.empty()) return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("url \"", url, "\" has no host"));
  place->host = std::string(host);
  place->port = absl::StrCat(port);
  return OkStatus();
}

Address UnixAddress(const std::string& path) {
  Address address;
  auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path, path.data(), path.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// The host read as a number; null when it is none. Asks nobody.
AddressList Numeric(const Place& place) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;
  const std::string host = place.host == "localhost" ? "127.0.0.1" : place.host;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), place.port.c_str(), &hints, &found) != 0) found = nullptr;
  return AddressList(found, freeaddrinfo);
}

}  // namespace

StatusOr<Place> Place::Parse(absl::string_view text) {
  KVT_ASSIGN_OR_RETURN(const Url url, Url::Parse(text));
  Place place;
  if (url.scheme != "tcp" && url.scheme != "unix")
    return Error(KVT_ERR_UNSUPPORTED,
                 absl::StrCat("scheme \"", url.scheme, ":\" is not one of tcp:, unix: that a node speaks"));
  KVT_RETURN_IF_ERROR(url.CheckOptions({"insecure", "bandwidth"}));
  KVT_ASSIGN_OR_RETURN(place.insecure, url.Flag("insecure"));
  KVT_ASSIGN_OR_RETURN(place.bytes_per_second, url.BytesPerSecond("bandwidth", 0));
  if (place.bytes_per_second == 0 && url.options.contains("bandwidth"))
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("url \"", text, "\": bandwidth is less than 1 B/s"));
  place.is_unix = url.scheme == "unix";
  if (place.is_unix) {
    place.path = url.rest;
    // A path that begins with two slashes needs two more, which parsing takes away.
    place.text = absl::StrCat("unix:", absl::StartsWith(url.rest, "//") ? "//" : "", url.rest);
    if (place.path.empty() || place.path.size() >= sizeof(sockaddr_un::sun_path))
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("url \"", text, "\": the path has ", place.path.size(),
                                " bytes, allowed are 1 to ", sizeof(sockaddr_un::sun_path) - 1));
  } else {
    KVT_RETURN_IF_ERROR(SplitHostPort(url.rest, text, &place));
    place.text = absl::StrCat("tcp://", url.rest);
  }
  return place;
}

bool Address::IsLoopback() const {
  if (family() == AF_UNIX) return true;
  if (family() == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&storage);
    return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr) != 0;
}

bool NeedsLookup(const Place& place) { return !place.is_unix && Numeric(place) == nullptr; }

StatusOr<Address> Resolve(const Place& place) {
  if (place.is_unix) {
    Address address = UnixAddress(place.path);
    address.text = place.text;
    return address;
  }
  const AddressList found = Numeric(place);
  if (found == nullptr)
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(place.text, ": host \"", place.host,
                                                        "\" is not a numeric address or localhost"));
  return Admit(place, found->ai_addr, found->ai_addrlen);
}

StatusOr<Address> Admit(const Place& place, const sockaddr* found, socklen_t size) {
  Address address;
  if (size > sizeof address.storage || (found->sa_family != AF_INET && found->sa_family != AF_INET6))
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(place.text, ": host \"", place.host,
                                                        "\" has an address of family ", found->sa_family));
  std::memcpy(&address.storage, found, size);
  address.size = size;
  address.text = place.text;
  if (!address.IsLoopback() && !place.insecure)
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat(place.text,
                              " is not loopback, and what goes there is neither encrypted nor "
                              "authenticated; add ?insecure=1 to allow it"));
  return address;
}

StatusOr<std::string> BoundUrl(int fd, const Place& place) {
  if (place.is_unix) return place.text;
  Address address;
  address.size = sizeof address.storage;
  char host[INET6_ADDRSTRLEN] = {};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0)
    return ErrnoError(errno, "getsockname", place.text);
  const std::string insecure = place.insecure ? "?insecure=1" : "";
  if (address.family() == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&address.storage);
    inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    return absl::StrCat("tcp://", host, ":", ntohs(in->sin_port), insecure);
  }
  const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
  return absl::StrCat("tcp://[", host, "]:", ntohs(in6->sin6_port), insecure);
}

}  // namespace kvt::net
