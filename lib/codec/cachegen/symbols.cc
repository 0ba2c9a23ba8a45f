#include "codec/cachegen/symbols.h"

#include <cstring>

namespace kvt::cachegen {
namespace {

constexpr uint64_t kLengthBytes = sizeof(uint32_t);

lossless::ChunkShape ShapeOf(size_t count, size_t channels) { return {{1, 0}, count, channels}; }

}  // namespace

uint64_t EncodeSymbolPlane(const uint8_t* symbols, size_t count, size_t channels, uint8_t* to) {
  const uint64_t raw_bytes = uint64_t{count} * channels;
  std::vector<uint8_t> coded;
  if (count != 0 && channels <= lossless::kChannelsMax) {
    std::vector<const uint8_t*> planes(channels);
    for (size_t c = 0; c < channels; ++c) planes[c] = symbols + c * count;
    coded = lossless::EncodeChunk(ShapeOf(count, channels), planes, {{}, {0}});
  }
  const bool pays = !coded.empty() && coded.size() < raw_bytes;
  const uint64_t bytes = pays ? coded.size() : raw_bytes;
  StoreLe<uint32_t>(to, static_cast<uint32_t>(bytes));
  if (bytes != 0) std::memcpy(to + kLengthBytes, pays ? coded.data() : symbols, bytes);
  return kLengthBytes + bytes;
}

Status DecodeSymbolPlane(size_t count, size_t channels, Bytes* stored, lossless::ChunkDecoder* decoder,
                         std::vector<uint8_t>* symbols) {
  const uint64_t raw_bytes = uint64_t{count} * channels;
  if (stored->size() < kLengthBytes) return Error(KVT_ERR_CORRUPT, "cachegen: it ends in a length");
  const uint64_t length = LoadLe<uint32_t>(stored->data());
  *stored = stored->subspan(kLengthBytes);
  if (length > stored->size() || length > raw_bytes) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("cachegen: symbols of ", length, " bytes in ", stored->size(),
                                               ", raw ", raw_bytes));
  }
  const Bytes chunk = stored->first(length);
  *stored = stored->subspan(length);
  symbols->resize(raw_bytes);
  if (length == raw_bytes) {
    std::copy(chunk.begin(), chunk.end(), symbols->begin());
    return OkStatus();
  }
  if (channels > lossless::kChannelsMax)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("cachegen: coded symbols of ", channels,
                                               " channels, the most are ", lossless::kChannelsMax));
  KVT_RETURN_IF_ERROR(decoder->Open(ShapeOf(count, channels), chunk));
  const size_t step = lossless::BlockTokens(channels);
  for (size_t done = 0; done < count; done += step) {
    const size_t block = std::min(step, count - done);
    KVT_RETURN_IF_ERROR(decoder->Next(block));
    for (size_t c = 0; c < channels; ++c)
      std::memcpy(symbols->data() + c * count + done, decoder->planes()[c], block);
  }
  return decoder->Close();
}

}  // namespace kvt::cachegen
