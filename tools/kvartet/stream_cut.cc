#include "kvartet/stream_cut.h"

#include <algorithm>

#include "engine/plan.h"
#include "kvartet/library.h"

namespace kvt::cli {
namespace {

constexpr size_t kLayerRanges = 4;
// Tokens are halved at a multiple of it, so that codecs with groups of tokens keep theirs whole; a half has
// no fewer.
constexpr int32_t kHalfGrain = 32;

}  // namespace

std::vector<Part> Parts(int32_t prefix_tokens) {
  std::vector<Part> parts;
  int32_t begin = 0;
  for (const int32_t size : Take(engine::PrefillChunks(prefix_tokens, kPrefillChunk), "prefill chunks")) {
    parts.push_back({begin, begin + size});
    begin += size;
  }
  return parts;
}

std::vector<LayerRange> CutLayers(uint32_t layers, std::span<const LayerRange> groups) {
  std::vector<uint32_t> ends;
  for (const LayerRange& group : groups) ends.push_back(group.end);
  if (ends.empty()) {
    for (uint32_t end = 1; end <= layers; ++end) ends.push_back(end);
  }
  const size_t count = std::min(ends.size(), kLayerRanges);
  std::vector<LayerRange> ranges;
  uint32_t begin = 0;
  for (size_t i = 1; i < count; ++i) {
    const uint32_t end = ends[i * ends.size() / count - 1];
    ranges.push_back({begin, end});
    begin = end;
  }
  // The last one ends with the model: a codec that has no group there says so when it encodes.
  ranges.push_back({begin, layers});
  return ranges;
}

std::vector<Piece> CutStream(std::span<const Part> parts, std::span<const LayerRange> layers, uint32_t sinks,
                             uint32_t window) {
  const LayerRange all = {layers.front().begin, layers.back().end};
  std::vector<Piece> pieces;
  for (size_t i = 0; i + 1 < parts.size(); ++i)
    pieces.push_back({i, parts[i].begin, parts[i].end, all, false, i == 0 ? sinks : 0});
  const size_t last = parts.size() - 1;
  const auto [begin, end] = parts[last];
  const int32_t coded = end - static_cast<int32_t>(std::min<int64_t>(window, end - begin));
  if (coded < end) pieces.push_back({last, coded, end, all, true, 0});
  if (coded == begin) return pieces;
  const int32_t half = ((coded - begin) / 2 + kHalfGrain - 1) / kHalfGrain * kHalfGrain;
  const bool halved = coded - begin - half >= kHalfGrain;
  for (const LayerRange& range : layers) {
    pieces.push_back({last, begin, halved ? begin + half : coded, range, false, last == 0 ? sinks : 0});
    if (halved) pieces.push_back({last, begin + half, coded, range, false, 0});
  }
  return pieces;
}

size_t EndOfPart(std::span<const Piece> pieces, size_t first) {
  size_t end = first;
  while (end < pieces.size() && pieces[end].part == pieces[first].part) ++end;
  return end;
}

}  // namespace kvt::cli
