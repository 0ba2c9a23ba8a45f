#include "engine/plan.h"

#include <algorithm>
#include <string>

namespace kvt::engine {

Result<std::vector<int32_t>> PrefillChunks(int32_t tokens, int32_t chunk) {
  if (tokens < 0)
    return Error{ErrorKind::kInvalid, "tokens is " + std::to_string(tokens) + ", must be 0 or more"};
  if (chunk < 2 * kMinChunk) {
    return Error{ErrorKind::kInvalid, "chunk is " + std::to_string(chunk) + ", must be " +
                                          std::to_string(2 * kMinChunk) + " or more"};
  }
  std::vector<int32_t> sizes(static_cast<size_t>(tokens / chunk), chunk);
  int32_t rest = tokens % chunk;
  if (rest == 0) return sizes;
  if (rest < kMinChunk && !sizes.empty()) {
    sizes.back() -= kMinChunk - rest;
    rest = kMinChunk;
  }
  sizes.push_back(rest);
  return sizes;
}

Result<int32_t> ReusableTokens(int32_t prefill, int32_t matched, int32_t grain) {
  if (grain < 1)
    return Error{ErrorKind::kInvalid, "grain is " + std::to_string(grain) + ", must be 1 or more"};
  if (prefill < 0 || matched < 0) {
    return Error{ErrorKind::kInvalid, "prefill is " + std::to_string(prefill) + " and matched is " +
                                          std::to_string(matched) + ", both must be 0 or more"};
  }
  const int32_t whole = std::min(matched, prefill) / grain * grain;
  if (whole == prefill) return whole;
  return std::min(whole, std::max(0, prefill - kMinChunk) / grain * grain);
}

}  // namespace kvt::engine
