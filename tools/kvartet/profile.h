// Profiles of the transform codec on their way: read from a file, offered by P, fetched by D.
#ifndef KVARTET_TOOLS_KVARTET_PROFILE_H_
#define KVARTET_TOOLS_KVARTET_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kvartet/channel.h"
#include "kvartet/library.h"
#include "kvartet/stream_cut.h"

namespace kvt::cli {

// In hexadecimal; checks the profile whole.
std::string ProfileFingerprint(std::span<const uint8_t> profile);

// The groups of layers that the transform codec can put into frames of their own with this profile.
std::vector<LayerRange> ProfileGroups(std::span<const uint8_t> profile);

// Millions of multiplications and additions a token, each way: by codec (transform, dense) and ratio, as
// {"transform": {"8": 25.1}}.
Json ProfileMflop(std::span<const uint8_t> profile);

// Puts a profile into a cache in memory and serves that to the node's peers. The cache must outlive the node.
Cache OfferProfile(const Runtime& runtime, const Node& node, std::span<const uint8_t> profile);

struct FetchedProfile {
  std::vector<uint8_t> profile;
  uint64_t moved = 0;  // bytes of the frame
  double ms = 0;
};

// Pulls the profile of a fingerprint (in hexadecimal) from a peer that offers it.
FetchedProfile FetchProfile(const Node& node, const Peer& peer, const std::string& fingerprint);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_PROFILE_H_
