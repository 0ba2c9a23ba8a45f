#include "cache/record.h"

#include <xxhash.h>

#include "kvartet/codec.h"

namespace kvt {
namespace {

constexpr uint32_t kMagic = 0x5254564b;  // "KVTR"
constexpr size_t kKind = 4, kSequence = 8, kLength = 16, kKey = 24, kReserved = kKey + KVT_KEY_BYTES;
constexpr size_t kChecksum = kRecordHeaderBytes - 8;

}  // namespace

void WriteRecordHeader(const RecordHeader& header, uint64_t salt, uint8_t out[kRecordHeaderBytes]) {
  std::memset(out, 0, kRecordHeaderBytes);
  StoreLe<uint32_t>(out, kMagic);
  StoreLe<uint32_t>(out + kKind, static_cast<uint32_t>(header.kind));
  StoreLe<uint64_t>(out + kSequence, header.sequence);
  StoreLe<uint64_t>(out + kLength, header.length);
  std::memcpy(out + kKey, header.key.bytes.data(), KVT_KEY_BYTES);
  StoreLe<uint64_t>(out + kChecksum, XXH3_64bits_withSeed(out, kChecksum, salt));
}

std::optional<RecordHeader> ReadRecordHeader(const uint8_t in[kRecordHeaderBytes], uint64_t salt) {
  if (LoadLe<uint32_t>(in) != kMagic) return std::nullopt;
  if (LoadLe<uint64_t>(in + kChecksum) != XXH3_64bits_withSeed(in, kChecksum, salt)) return std::nullopt;
  RecordHeader header;
  header.kind = static_cast<RecordKind>(LoadLe<uint32_t>(in + kKind));
  header.sequence = LoadLe<uint64_t>(in + kSequence);
  header.length = LoadLe<uint64_t>(in + kLength);
  header.key = Key::From(in + kKey);
  for (size_t i = kReserved; i < kChecksum; ++i) {
    if (in[i] != 0) return std::nullopt;
  }
  const bool frame = header.kind == RecordKind::kFrame && header.length != 0;
  const bool tombstone = header.kind == RecordKind::kTombstone && header.length == 0;
  if ((!frame && !tombstone) || header.length > KVT_FRAME_BYTES_MAX) return std::nullopt;
  return header;
}

}  // namespace kvt
