#include "engine/kv_blob.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <numeric>
#include <string>

namespace kvt::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "the engine writes blobs in host order");

constexpr uint32_t kMagic = 0xaf143cd8;
constexpr uint64_t kPrefixBytes = 16;  // magic, sequence, streams, cells
constexpr uint64_t kCellBytes = 12;
constexpr uint64_t kBodyBytes = 8;          // transposed V, layers
constexpr uint64_t kLayerHeaderBytes = 12;  // type, row bytes
constexpr uint32_t kMaxLayers = 1 << 16;
constexpr uint64_t kMaxRowBytes = 1ull << 32;

uint64_t RowsBegin(int32_t tokens) {
  return kPrefixBytes + kCellBytes * static_cast<uint64_t>(tokens) + kBodyBytes;
}

// Reads fields off the front and remembers the first failure.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <class T>
  bool Read(T* value) {
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  bool Skip(uint64_t count) {
    if (bytes_.size() - at_ < count) return false;
    at_ += count;
    return true;
  }
  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const uint8_t> bytes_;
  uint64_t at_ = 0;
};

template <class T>
Error Bad(const char* field, T value, const std::string& want, uint64_t offset,
          ErrorKind kind = ErrorKind::kCorrupt) {
  return Error{kind, std::string("state blob: ") + field + " is " + std::to_string(value) + ", must be " +
                         want + " (at byte " + std::to_string(offset) + ")"};
}

Error Short(const char* field, const Reader& reader) {
  return Error{ErrorKind::kCorrupt, std::string("state blob: ends inside ") + field + " (at byte " +
                                        std::to_string(reader.at()) + ", " + std::to_string(reader.left()) +
                                        " left)"};
}

// Reads the rows of one stream of every layer; all rows have one size, which is returned.
Result<uint64_t> ParseStream(Reader& reader, const char* stream, int32_t layers, int32_t tokens) {
  uint64_t row_bytes = 0;
  for (int32_t layer = 0; layer < layers; ++layer) {
    const std::string name = std::string(stream) + " of layer " + std::to_string(layer);
    int32_t type = 0;
    uint64_t bytes = 0;
    if (!reader.Read(&type)) return Short((name + ": type").c_str(), reader);
    if (type != kElementF16) {
      return Bad((name + ": type").c_str(), type, "1 (f16)", reader.at() - sizeof type,
                 ErrorKind::kUnsupported);
    }
    if (!reader.Read(&bytes)) return Short((name + ": row bytes").c_str(), reader);
    if (bytes == 0 || bytes % 2 != 0 || bytes > kMaxRowBytes) {
      return Bad((name + ": row bytes").c_str(), bytes, "an even number from 2 to 2^32",
                 reader.at() - sizeof bytes);
    }
    if (layer == 0) row_bytes = bytes;
    if (bytes != row_bytes) {
      return Bad((name + ": row bytes").c_str(), bytes, std::to_string(row_bytes) + " as in layer 0",
                 reader.at() - sizeof bytes, ErrorKind::kUnsupported);
    }
    if (!reader.Skip(bytes * static_cast<uint64_t>(tokens))) return Short((name + ": rows").c_str(), reader);
  }
  return row_bytes;
}

template <class T>
uint8_t* Put(uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

}  // namespace

uint64_t BlobBytes(const KvGeometry& geometry, int32_t tokens) {
  return RowsBegin(tokens) + 2 * kLayerHeaderBytes * static_cast<uint64_t>(geometry.layers) +
         geometry.token_bytes() * static_cast<uint64_t>(tokens);
}

int32_t BlobTokens(const KvGeometry& geometry, uint64_t bytes) {
  const uint64_t headers = BlobBytes(geometry, 0);
  if (bytes <= headers) return 0;
  return static_cast<int32_t>((bytes - headers) / (kCellBytes + geometry.token_bytes()));
}

Result<BlobFacts> ParseBlob(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  uint32_t magic = 0, streams = 0, cells = 0, transposed = 0, layers = 0;
  int32_t sequence = 0;
  if (!reader.Read(&magic)) return Short("magic", reader);
  if (magic != kMagic) return Bad("magic", magic, std::to_string(kMagic), 0);
  if (!reader.Read(&sequence)) return Short("sequence", reader);
  if (!reader.Read(&streams)) return Short("streams", reader);
  if (streams != 1) return Bad("streams", streams, "1", reader.at() - sizeof streams);
  if (!reader.Read(&cells)) return Short("cells", reader);
  if (cells == 0 || cells > static_cast<uint32_t>(kMaxBlobTokens)) {
    return Bad("cells", cells, "1 to " + std::to_string(kMaxBlobTokens), reader.at() - sizeof cells);
  }
  if (reader.left() < kCellBytes * cells) return Short("cells", reader);
  BlobFacts facts;
  const auto tokens = static_cast<int32_t>(cells);
  facts.positions.reserve(cells);
  for (int32_t i = 0; i < tokens; ++i) {
    int32_t position = 0;
    uint32_t sequences = 0;
    int32_t owner = 0;
    if (!reader.Read(&position) || !reader.Read(&sequences) || !reader.Read(&owner))
      return Short("cells", reader);
    if (position < 0 || (i > 0 && position <= facts.positions.back()))
      return Bad("position", position, "0 or more and above that of the cell before",
                 reader.at() - kCellBytes);
    if (sequences != 1) return Bad("sequences of a cell", sequences, "1", reader.at() - 8);
    facts.positions.push_back(position);
  }
  if (!reader.Read(&transposed)) return Short("transposed V", reader);
  if (transposed != 0) {
    return Bad("transposed V", transposed, "0 (flash attention on)", reader.at() - sizeof transposed,
               ErrorKind::kUnsupported);
  }
  if (!reader.Read(&layers)) return Short("layers", reader);
  if (layers == 0 || layers > kMaxLayers) {
    return Bad("layers", layers, "1 to " + std::to_string(kMaxLayers), reader.at() - sizeof layers);
  }
  facts.layers = static_cast<int32_t>(layers);
  Result<uint64_t> k = ParseStream(reader, "K", facts.layers, tokens);
  if (!k.ok()) return k.error();
  Result<uint64_t> v = ParseStream(reader, "V", facts.layers, tokens);
  if (!v.ok()) return v.error();
  facts.row_bytes_k = *k;
  facts.row_bytes_v = *v;
  if (reader.left() != 0) return Bad("length", bytes.size(), std::to_string(reader.at()), reader.at());
  return facts;
}

Result<BlobFacts> ParseBlob(std::span<const uint8_t> bytes, const KvGeometry& geometry) {
  Result<BlobFacts> facts = ParseBlob(bytes);
  if (!facts.ok()) return facts;
  const auto differs = [](const char* field, uint64_t value, uint64_t want) {
    return Error{ErrorKind::kInvalid, std::string("state blob: ") + field + " is " + std::to_string(value) +
                                          ", the model has " + std::to_string(want)};
  };
  if (facts->layers != geometry.layers) {
    return differs("layers", static_cast<uint64_t>(facts->layers), static_cast<uint64_t>(geometry.layers));
  }
  if (facts->row_bytes_k != geometry.row_bytes_k())
    return differs("K row bytes", facts->row_bytes_k, geometry.row_bytes_k());
  if (facts->row_bytes_v != geometry.row_bytes_v())
    return differs("V row bytes", facts->row_bytes_v, geometry.row_bytes_v());
  return facts;
}

Result<KvGeometry> GeometryOf(const BlobFacts& facts, int64_t kv_heads, int64_t head_dim_k) {
  const std::string rows = "rows of " + std::to_string(facts.row_bytes_k) + " and " +
                           std::to_string(facts.row_bytes_v) + " bytes are not those of " +
                           std::to_string(kv_heads) + " KV heads of " + std::to_string(head_dim_k) +
                           " elements";
  constexpr int64_t kMost = 1 << 20;
  if (kv_heads < 1 || kv_heads > kMost || head_dim_k < 1 || head_dim_k > kMost) {
    return Error{ErrorKind::kUnsupported, rows};
  }
  KvGeometry geometry;
  geometry.layers = facts.layers;
  geometry.kv_heads = static_cast<int32_t>(kv_heads);
  geometry.head_dim_k = static_cast<int32_t>(head_dim_k);
  geometry.head_dim_v = static_cast<int32_t>(facts.row_bytes_v / (2 * static_cast<uint64_t>(kv_heads)));
  if (geometry.row_bytes_k() != facts.row_bytes_k || geometry.row_bytes_v() != facts.row_bytes_v) {
    return Error{ErrorKind::kUnsupported, rows};
  }
  return geometry;
}

Result<KvBlob> KvBlob::Create(const KvGeometry& geometry, int32_t pos_begin, int32_t tokens) {
  if (tokens < 1 || tokens > kMaxBlobTokens) {
    return Error{ErrorKind::kInvalid,
                 "tokens is " + std::to_string(tokens) + ", must be 1 to " + std::to_string(kMaxBlobTokens)};
  }
  if (pos_begin < 0 || pos_begin > INT32_MAX - tokens) {
    return Error{ErrorKind::kInvalid, "pos_begin is " + std::to_string(pos_begin) + ", must be 0 or more"};
  }
  std::vector<int32_t> positions(static_cast<size_t>(tokens));
  std::iota(positions.begin(), positions.end(), pos_begin);
  return Create(geometry, std::move(positions));
}

Result<KvBlob> KvBlob::Create(const KvGeometry& geometry, std::vector<int32_t> positions) {
  if (positions.empty() || positions.size() > static_cast<size_t>(kMaxBlobTokens)) {
    return Error{ErrorKind::kInvalid, "positions has " + std::to_string(positions.size()) +
                                          " entries, must have 1 to " + std::to_string(kMaxBlobTokens)};
  }
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] < 0 || positions[i] == INT32_MAX || (i > 0 && positions[i] <= positions[i - 1])) {
      return Error{ErrorKind::kInvalid, "positions[" + std::to_string(i) + "] is " +
                                            std::to_string(positions[i]) +
                                            ", must be 0 to 2^31 - 2 and above the one before"};
    }
  }
  if (geometry.layers < 1 || geometry.kv_heads < 1 || geometry.head_dim_k < 1 || geometry.head_dim_v < 1) {
    return Error{ErrorKind::kInvalid, "geometry has a field below 1"};
  }
  KvBlob blob;
  blob.geometry_ = geometry;
  blob.positions_ = std::move(positions);
  blob.size_ = BlobBytes(geometry, blob.tokens());
  blob.buffer_.reset(new (std::nothrow) uint8_t[blob.size_]);
  if (blob.buffer_ == nullptr) {
    return Error{ErrorKind::kNoSpace, "no memory for a blob of " + std::to_string(blob.size_) + " bytes"};
  }
  blob.WriteHeaders();
  return blob;
}

void KvBlob::WriteHeaders() {
  uint8_t* to = buffer_.get();
  to = Put<uint32_t>(to, kMagic);
  to = Put<int32_t>(to, 0);
  to = Put<uint32_t>(to, 1);
  to = Put<uint32_t>(to, static_cast<uint32_t>(tokens()));
  for (const int32_t position : positions_) {
    to = Put<int32_t>(to, position);
    to = Put<uint32_t>(to, 1);
    to = Put<int32_t>(to, 0);
  }
  to = Put<uint32_t>(to, 0);
  to = Put<uint32_t>(to, static_cast<uint32_t>(geometry_.layers));
  for (const uint64_t row_bytes : {geometry_.row_bytes_k(), geometry_.row_bytes_v()}) {
    for (int32_t layer = 0; layer < geometry_.layers; ++layer) {
      to = Put<int32_t>(to, kElementF16);
      to = Put<uint64_t>(to, row_bytes);
      to += row_bytes * static_cast<uint64_t>(tokens());
    }
  }
}

Result<KvBlob> KvBlob::FromBytes(const KvGeometry& geometry, std::span<const uint8_t> bytes) {
  Result<BlobFacts> facts = ParseBlob(bytes, geometry);
  if (!facts.ok()) return facts.error();
  Result<KvBlob> blob = Create(geometry, std::move(facts->positions));
  if (!blob.ok()) return blob;
  for (int32_t layer = 0; layer < geometry.layers; ++layer) {
    for (const RowView& rows : {blob->K(layer), blob->V(layer)}) {
      const ptrdiff_t offset = rows.base - blob->bytes().data();
      std::memcpy(rows.base, bytes.data() + offset,
                  static_cast<size_t>(rows.tokens) * static_cast<size_t>(rows.token_stride));
    }
  }
  return blob;
}

RowView KvBlob::K(int32_t layer) const {
  const uint64_t row = geometry_.row_bytes_k();
  const uint64_t each = kLayerHeaderBytes + row * static_cast<uint64_t>(tokens());
  RowView view;
  view.base = buffer_.get() + RowsBegin(tokens()) + each * static_cast<uint64_t>(layer) + kLayerHeaderBytes;
  view.token_stride = static_cast<int64_t>(row);
  view.head_stride = 2ll * geometry_.head_dim_k;
  view.element_stride = 2;
  view.tokens = tokens();
  view.heads = geometry_.kv_heads;
  view.head_dim = geometry_.head_dim_k;
  return view;
}

RowView KvBlob::V(int32_t layer) const {
  const uint64_t all_k = (kLayerHeaderBytes + geometry_.row_bytes_k() * static_cast<uint64_t>(tokens())) *
                         static_cast<uint64_t>(geometry_.layers);
  const uint64_t row = geometry_.row_bytes_v();
  const uint64_t each = kLayerHeaderBytes + row * static_cast<uint64_t>(tokens());
  RowView view;
  view.base =
      buffer_.get() + RowsBegin(tokens()) + all_k + each * static_cast<uint64_t>(layer) + kLayerHeaderBytes;
  view.token_stride = static_cast<int64_t>(row);
  view.head_stride = 2ll * geometry_.head_dim_v;
  view.element_stride = 2;
  view.tokens = tokens();
  view.heads = geometry_.kv_heads;
  view.head_dim = geometry_.head_dim_v;
  return view;
}

std::vector<void*> KvBlob::Bases() const {
  std::vector<void*> bases;
  bases.reserve(2 * static_cast<size_t>(geometry_.layers));
  for (int32_t layer = 0; layer < geometry_.layers; ++layer) {
    bases.push_back(K(layer).base);
    bases.push_back(V(layer).base);
  }
  return bases;
}

Result<KvBlob> KvBlob::Slice(int32_t begin, int32_t end) const {
  const auto first = std::lower_bound(positions_.begin(), positions_.end(), begin);
  const auto last = std::lower_bound(positions_.begin(), positions_.end(), end);
  if (begin < pos_begin() || end > pos_end() || first >= last) {
    return Error{ErrorKind::kInvalid, "slice [" + std::to_string(begin) + ", " + std::to_string(end) +
                                          ") has no rows inside [" + std::to_string(pos_begin()) + ", " +
                                          std::to_string(pos_end()) + ")"};
  }
  Result<KvBlob> slice = Create(geometry_, {first, last});
  if (!slice.ok()) return slice;
  const auto copy = [&](const RowView& from, const RowView& to) {
    std::memcpy(to.base, from.base + from.token_stride * (first - positions_.begin()),
                static_cast<size_t>(to.tokens * to.token_stride));
  };
  for (int32_t layer = 0; layer < geometry_.layers; ++layer) {
    copy(K(layer), slice->K(layer));
    copy(V(layer), slice->V(layer));
  }
  return slice;
}

}  // namespace kvt::engine
