// The engine's state blob of one sequence: K and V rows of tokens at ascending positions behind small
// headers, in one buffer.
//
// Little-endian, fields unaligned:
//   u32 magic, i32 sequence, u32 streams = 1, u32 cells
//   per cell: i32 position, u32 sequences = 1, i32 sequence
//   u32 transposed V = 0, u32 layers
//   K of every layer: i32 type, u64 row bytes, cells x row; then V of every layer in the same form
// Invariant: the headers of a KvBlob always match its geometry, so its rows can be written in place and
// committed. The engine has no checksum and accepts trailing bytes; ParseBlob does not accept them. Threads:
// one thread at a time, or several that write different rows.
#ifndef KVARTET_TOOLS_ENGINE_KV_BLOB_H_
#define KVARTET_TOOLS_ENGINE_KV_BLOB_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/result.h"

namespace kvt::engine {

inline constexpr int32_t kElementF16 = 1;  // the engine's number for f16
inline constexpr int32_t kMaxBlobTokens = 1 << 24;

// What every blob of a model has in common.
struct KvGeometry {
  int32_t layers = 0;
  int32_t kv_heads = 0;
  int32_t head_dim_k = 0;
  int32_t head_dim_v = 0;

  uint64_t row_bytes_k() const {
    return 2ull * static_cast<uint64_t>(kv_heads) * static_cast<uint64_t>(head_dim_k);
  }
  uint64_t row_bytes_v() const {
    return 2ull * static_cast<uint64_t>(kv_heads) * static_cast<uint64_t>(head_dim_v);
  }
  uint64_t token_bytes() const { return static_cast<uint64_t>(layers) * (row_bytes_k() + row_bytes_v()); }
  friend bool operator==(const KvGeometry&, const KvGeometry&) = default;
};

// The bytes of a blob of `tokens` tokens, and the tokens of a blob of so many bytes.
uint64_t BlobBytes(const KvGeometry& geometry, int32_t tokens);
int32_t BlobTokens(const KvGeometry& geometry, uint64_t bytes);

// What a blob says about itself.
struct BlobFacts {
  std::vector<int32_t> positions;  // of its tokens, ascending
  int32_t layers = 0;
  uint64_t row_bytes_k = 0;
  uint64_t row_bytes_v = 0;
};

// Reads and checks the whole layout: every header, every cell and the length. Payload bytes are not looked
// at.
// @return facts; kCorrupt with the field, its value and its offset; kUnsupported for a layout that is well
// formed but not f16 rows (transposed V, another element type).
Result<BlobFacts> ParseBlob(std::span<const uint8_t> bytes);

// As ParseBlob, and the layers and row sizes must be those of `geometry`.
Result<BlobFacts> ParseBlob(std::span<const uint8_t> bytes, const KvGeometry& geometry);

// The geometry that fits a blob's rows. The error says what does not fit.
Result<KvGeometry> GeometryOf(const BlobFacts& facts, int64_t kv_heads, int64_t head_dim_k);

// The rows of one layer and stream: element e of head h of token t is at base + t * token_stride + h *
// head_stride + e * element_stride.
struct RowView {
  uint8_t* base = nullptr;  // aligned to 2 bytes
  int64_t token_stride = 0;
  int64_t head_stride = 0;
  int64_t element_stride = 0;
  int32_t tokens = 0;
  int32_t heads = 0;
  int32_t head_dim = 0;
};

class KvBlob {
 public:
  // A buffer for tokens [pos_begin, pos_begin + tokens) with its headers written and its rows not
  // initialised.
  static Result<KvBlob> Create(const KvGeometry& geometry, int32_t pos_begin, int32_t tokens);

  // The same for tokens at ascending positions, which may have gaps.
  static Result<KvBlob> Create(const KvGeometry& geometry, std::vector<int32_t> positions);

  // Takes over a copy of bytes that came from elsewhere, after checking them.
  static Result<KvBlob> FromBytes(const KvGeometry& geometry, std::span<const uint8_t> bytes);

  KvBlob(KvBlob&&) = default;
  KvBlob& operator=(KvBlob&&) = default;

  const KvGeometry& geometry() const { return geometry_; }
  const std::vector<int32_t>& positions() const { return positions_; }
  int32_t pos_begin() const { return positions_.front(); }
  int32_t pos_end() const { return positions_.back() + 1; }
  int32_t tokens() const { return static_cast<int32_t>(positions_.size()); }
  bool has_gaps() const { return pos_end() - pos_begin() != tokens(); }

  // Views into the buffer; valid as long as the blob, also after it is moved.
  RowView K(int32_t layer) const;
  RowView V(int32_t layer) const;
  // Base pointers in the order K of layer 0, V of layer 0, K of layer 1 and so on.
  std::vector<void*> Bases() const;

  // The whole buffer, headers included: what the engine reads and writes.
  std::span<uint8_t> bytes() { return {buffer_.get(), size_}; }
  std::span<const uint8_t> bytes() const { return {buffer_.get(), size_}; }

  // Writes the headers once more, after the engine wrote its own (which hold the sequence number that it
  // used).
  void WriteHeaders();

  // Copies the rows of tokens at positions [pos_begin, pos_end) into a new blob.
  Result<KvBlob> Slice(int32_t pos_begin, int32_t pos_end) const;

 private:
  KvBlob() = default;

  KvGeometry geometry_;
  std::vector<int32_t> positions_;
  size_t size_ = 0;
  std::unique_ptr<uint8_t[]> buffer_;
};

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_KV_BLOB_H_
