// Record: what segments are made of; docs/file-format.md has the bytes.
//
// A header with its own checksum, then a frame, then zeros up to the next multiple of 64 bytes. The checksum
// is seeded with the directory's salt, so that bytes inside a frame cannot pass for a record. Stateless.
#ifndef KVARTET_LIB_CACHE_RECORD_H_
#define KVARTET_LIB_CACHE_RECORD_H_

#include <optional>

#include "base/bytes.h"
#include "key/key.h"

namespace kvt {

inline constexpr uint64_t kRecordAlignment = 64;
inline constexpr uint64_t kRecordHeaderBytes = 128;

enum class RecordKind : uint32_t {
  kFrame = 1,
  kTombstone = 2,  // the key's frames with a lower sequence number are removed
};

struct RecordHeader {
  RecordKind kind = RecordKind::kFrame;
  uint64_t sequence = 0;  // of the put or the removal; a record keeps it when it is moved
  uint64_t length = 0;    // of the frame; 0 for a tombstone
  Key key;
};

// Bytes that a record with a frame of `length` bytes takes.
constexpr uint64_t RecordBytes(uint64_t length) {
  return kRecordHeaderBytes + (length + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

void WriteRecordHeader(const RecordHeader& header, uint64_t salt, uint8_t out[kRecordHeaderBytes]);
// Nothing unless the bytes are a header of this version, salt and all.
std::optional<RecordHeader> ReadRecordHeader(const uint8_t in[kRecordHeaderBytes], uint64_t salt);

}  // namespace kvt

#endif  // KVARTET_LIB_CACHE_RECORD_H_
