// Places as text. What is understood is understood the same when it is written again, and addresses that need
// no name server resolve or say why not.
#include "base/url.h"
#include "fuzz/small.h"
#include "net/address.h"

using kvt::fuzz::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = kvt::ParseSize(text); bytes.ok()) {
    Require(*kvt::ParseSize(absl::StrCat(*bytes)) <= uint64_t{9'000'000'000'000'000'000});
  }
  (void)kvt::ParseRate(text);
  const auto url = kvt::Url::Parse(text);
  if (url.ok()) {
    Require(!url->scheme.empty());
    for (const auto& [name, value] : url->options) {
      Require(!name.empty());
      (void)url->Size(name, 0);
      (void)url->BytesPerSecond(name, 0);
      (void)url->Flag(name);
    }
    (void)url->CheckOptions({"capacity", "insecure"});
  }
  const auto place = kvt::net::Place::Parse(text);
  Require(!place.ok() || url.ok());
  if (!place.ok()) return 0;
  const auto again = kvt::net::Place::Parse(place->text);
  Require(again.ok() && again->text == place->text && again->host == place->host &&
          again->port == place->port && again->path == place->path);
  if (kvt::net::NeedsLookup(*place)) return 0;
  const auto address = kvt::net::Resolve(*place);
  if (address.ok()) Require(place->insecure || address->IsLoopback());
  return 0;
}
