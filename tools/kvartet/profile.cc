#include "kvartet/profile.h"

#include <array>
#include <cstdio>

#include "kvartet/channel.h"
#include "kvartet/clock.h"
#include "kvartet/files.h"

namespace kvt::cli {
namespace {

constexpr int64_t kPutMs = 60'000;
constexpr int64_t kFetchMs = 300'000;

using FingerprintBytes = std::array<uint8_t, KVT_FINGERPRINT_BYTES>;

FingerprintBytes Fingerprint(std::span<const uint8_t> profile) {
  FingerprintBytes fingerprint;
  Check(kvt_profile_fingerprint(profile.data(), profile.size(), fingerprint.data()),
        "kvt_profile_fingerprint");
  return fingerprint;
}

KeyBytes ProfileKey(const FingerprintBytes& fingerprint) {
  KeyBytes key;
  Check(kvt_profile_key(fingerprint.data(), key.data()), "kvt_profile_key");
  return key;
}

Json Describe(std::span<const uint8_t> profile) {
  return Json::parse(CopyText(
      [&](char* buf, size_t cap, size_t* needed) {
        return kvt_profile_describe(profile.data(), profile.size(), buf, cap, needed);
      },
      "kvt_profile_describe"));
}

}  // namespace

std::string ProfileFingerprint(std::span<const uint8_t> profile) { return Hex(Fingerprint(profile)); }

std::vector<LayerRange> ProfileGroups(std::span<const uint8_t> profile) {
  const Json facts = Describe(profile);
  std::vector<LayerRange> groups;
  for (const Json& group : facts.at("groups")) {
    const std::string layers = group.at("layers").get<std::string>();
    LayerRange range;
    if (std::sscanf(layers.c_str(), "[%u, %u)", &range.begin, &range.end) != 2)
      throw Failure("the profile describes a group's layers as \"" + layers + "\"");
    // Streams of one group follow each other.
    if (groups.empty() || groups.back().end != range.end) groups.push_back(range);
  }
  return groups;
}

Json ProfileMflop(std::span<const uint8_t> profile) { return Describe(profile).at("mflop"); }

Cache OfferProfile(const Runtime& runtime, const Node& node, std::span<const uint8_t> profile) {
  const KeyBytes key = ProfileKey(Fingerprint(profile));
  const NamespaceDigest ns = DemoNamespace();
  std::vector<uint8_t> frame;
  CopyBytes(
      [&](uint8_t* buf, size_t cap, size_t* needed) {
        return kvt_profile_wrap(profile.data(), profile.size(), ns.data(), buf, cap, needed);
      },
      "kvt_profile_wrap", &frame);
  const std::string url = "mem:?capacity=" + std::to_string(2 * frame.size()) + "B";
  Cache cache;
  Check(kvt_cache_open(runtime.get(), url.data(), url.size(), cache.out()), "kvt_cache_open");
  const uint64_t length = frame.size();
  kvt_status_t result = KVT_OK;
  uint64_t operation = 0;
  Check(kvt_cache_submit_put(cache.get(), key.data(), 1, frame.data(), &length, &result, kPutMs, &operation),
        "kvt_cache_submit_put");
  Check(kvt_cache_wait(cache.get(), operation, kPutMs, nullptr), "kvt_cache_submit_put");
  Check(kvt_node_serve(node.get(), cache.get()), "kvt_node_serve");
  return cache;
}

FetchedProfile FetchProfile(const Node& node, const Peer& peer, const std::string& fingerprint) {
  const Clock clock;
  FingerprintBytes wanted;
  FromHex(fingerprint, wanted);
  const KeyBytes key = ProfileKey(wanted);
  std::vector<uint8_t> frame(1 << 20);
  uint64_t length = 0;
  kvt_status_t result = KVT_ERR_BUFFER_TOO_SMALL;
  // The first answer says how long the frame is.
  for (int attempt = 0; attempt < 2 && result == KVT_ERR_BUFFER_TOO_SMALL; ++attempt) {
    if (length > frame.size()) frame.resize(length);
    uint64_t operation = 0;
    Check(kvt_peer_submit_pull(peer.get(), key.data(), 1, frame.data(), frame.size(), &length, &result,
                               kFetchMs, &operation),
          "kvt_peer_submit_pull");
    const kvt_status_t status = kvt_node_wait(node.get(), operation, kFetchMs, nullptr);
    if (status != KVT_OK && result == KVT_OK) result = status;
  }
  if (result != KVT_OK) {
    throw Failure("profile " + fingerprint + " did not come from the peer: " + kvt_status_name(result),
                  result);
  }
  FetchedProfile fetched;
  fetched.moved = length;
  CopyBytes([&](uint8_t* buf, size_t cap,
                size_t* needed) { return kvt_profile_unwrap(frame.data(), length, buf, cap, needed); },
            "kvt_profile_unwrap", &fetched.profile);
  fetched.ms = clock.Milliseconds();
  return fetched;
}

}  // namespace kvt::cli
