#include "codec/nested/nested.h"

#include <cstring>

#include "codec/lossless/chunk.h"
#include "codec/nested/parts.h"
#include "codec/raw.h"
#include "cpu/planes.h"

namespace kvt {
namespace {

using lossless::BlockTokens;
using lossless::ChunkShape;
using lossless::ChunkTokens;
using nested::Form;

constexpr uint64_t kLengthBytes = sizeof(uint32_t), kHashBytes = sizeof(uint64_t);

// The memory that one call uses again for each of its segments.
struct Work {
  lossless::ChunkDecoder decoder;
  std::vector<uint8_t> rows, other, bytes, planes;
  std::vector<const uint8_t*> from;
  std::vector<uint8_t*> to, part;
};

// Pointers to `count` runs of `stride` bytes.
template <typename Pointer>
void Point(uint8_t* memory, size_t count, size_t stride, std::vector<Pointer>* pointers) {
  pointers->resize(count);
  for (size_t i = 0; i < count; ++i) (*pointers)[i] = memory + i * stride;
}

// The planes of one part of the rows, in chunks as lossless has them: a u32 length and so many bytes, which
// are the planes as they are when they are as many.
class Chunks {
 public:
  Chunks(const SegmentShape& shape, bool coarse)
      : shape_(shape), form_(nested::FormOf(shape.element, shape.stream)), coarse_(coarse) {}

  uint64_t BytesMin() const {
    const uint64_t step = ChunkTokens(shape_.channels());
    return (shape_.coded() + step - 1) / step * kLengthBytes;
  }
  uint64_t BytesMax() const { return BytesMin() + RawBytes(shape_.coded()); }

  // Codes all tokens but the exempt ones; body(rows, count) is called with their rows, chunk by chunk.
  template <typename Body>
  uint8_t* Encode(RowWindow& rows, uint8_t* to, const Body& body) const {
    Work& work = rows.Work<Work>();
    const lossless::Turns turns = coarse_ ? lossless::TurnsOf(shape_) : lossless::Turns{{}, {0}};
    const uint64_t step = ChunkTokens(shape_.channels());
    for (uint64_t token = 0; token < shape_.coded(); token += step) {
      const uint64_t tokens = std::min(step, shape_.coded() - token);
      kernels::HashCopy unused(nullptr);
      work.rows.resize(tokens * shape_.raw_row_bytes());
      EncodeRaw(shape_, rows, shape_.exempt_first + token, tokens, work.rows.data(), unused);
      body(work.rows.data(), tokens);
      PartRows(tokens, &work);
      const uint64_t raw_bytes = RawBytes(tokens);
      std::vector<uint8_t> coded;
      if (shape_.channels() <= lossless::kChannelsMax) {
        Point(work.planes.data(), Planes() * shape_.channels(), tokens, &work.from);
        coded = EncodeChunk(ShapeOf(tokens), work.from, turns);
      }
      const bool pays = !coded.empty() && coded.size() < raw_bytes;
      const uint64_t bytes = pays ? coded.size() : raw_bytes;
      StoreLe<uint32_t>(to, static_cast<uint32_t>(bytes));
      std::memcpy(to + kLengthBytes, pays ? coded.data() : work.planes.data(), bytes);
      to += kLengthBytes + bytes;
    }
    return to;
  }

  // Calls body(token, count, rows) with rows of which this part's bits are set and all others are 0; `token`
  // counts from the first one that is not exempt.
  template <typename Body>
  Status Decode(Bytes stored, RowWindow& rows, const Body& body) const {
    const uint64_t step = ChunkTokens(shape_.channels());
    for (uint64_t token = 0; token < shape_.coded(); token += step) {
      const uint64_t tokens = std::min(step, shape_.coded() - token);
      if (stored.size() < kLengthBytes) return Error(KVT_ERR_CORRUPT, "nested: it ends in a chunk's length");
      const uint64_t length = LoadLe<uint32_t>(stored.data());
      stored = stored.subspan(kLengthBytes);
      if (length > stored.size() || length > RawBytes(tokens)) {
        return Error(KVT_ERR_CORRUPT, absl::StrCat("nested: a chunk of ", length, " bytes in ", stored.size(),
                                                   ", raw ", RawBytes(tokens)));
      }
      KVT_RETURN_IF_ERROR(DecodeChunk(stored.first(length), rows, token, tokens, body));
      stored = stored.subspan(length);
    }
    if (!stored.empty())
      return Error(KVT_ERR_CORRUPT, absl::StrCat("nested: ", stored.size(), " bytes too many"));
    return OkStatus();
  }

 private:
  size_t Planes() const { return coarse_ ? form_.coarse : form_.rest; }
  uint64_t RawBytes(uint64_t tokens) const { return Planes() * shape_.channels() * tokens; }
  ChunkShape ShapeOf(uint64_t tokens) const {
    return {{Planes(), coarse_ ? form_.bytes.rotate : 0}, tokens, shape_.channels()};
  }

  // From work.rows to this part's planes in work.planes.
  void PartRows(uint64_t tokens, Work* work) const {
    const size_t channels = shape_.channels();
    work->bytes.resize(tokens * shape_.raw_row_bytes());
    work->planes.resize(RawBytes(tokens));
    Point(work->rows.data(), tokens, shape_.raw_row_bytes(), &work->from);
    Point(work->bytes.data(), form_.bytes.width * channels, tokens, &work->to);
    kernels::SplitPlanes(form_.bytes, work->from.data(), tokens, channels, work->to.data());
    for (size_t c = 0; c < channels; ++c) {
      const uint8_t* bytes[kernels::kPlanesMax] = {};
      uint8_t* part[nested::kPartPlanesMax] = {};
      for (size_t p = 0; p < form_.bytes.width; ++p) bytes[p] = work->to[p * channels + c];
      for (size_t p = 0; p < Planes(); ++p) part[p] = work->planes.data() + (p * channels + c) * tokens;
      nested::Part(form_, bytes, tokens, coarse_ ? part : nullptr, coarse_ ? nullptr : part);
    }
  }

  template <typename Body>
  Status DecodeChunk(Bytes chunk, RowWindow& rows, uint64_t token, uint64_t tokens, const Body& body) const {
    Work& work = rows.Work<Work>();
    const bool coded = chunk.size() != RawBytes(tokens);
    if (coded && shape_.channels() > lossless::kChannelsMax)
      return Error(KVT_ERR_CORRUPT, absl::StrCat("nested: a coded chunk of ", shape_.channels(),
                                                 " channels, the most are ", lossless::kChannelsMax));
    if (coded) KVT_RETURN_IF_ERROR(work.decoder.Open(ShapeOf(tokens), chunk));
    const uint64_t step = BlockTokens(shape_.channels());
    for (uint64_t done = 0; done < tokens; done += step) {
      const uint64_t count = std::min(step, tokens - done);
      if (coded) {
        KVT_RETURN_IF_ERROR(work.decoder.Next(count));
        work.from.assign(work.decoder.planes(), work.decoder.planes() + Planes() * shape_.channels());
      } else {
        work.from.resize(Planes() * shape_.channels());
        for (size_t i = 0; i < work.from.size(); ++i) work.from[i] = chunk.data() + i * tokens + done;
      }
      JoinRows(count, &work);
      KVT_RETURN_IF_ERROR(body(token + done, count, work.rows.data()));
    }
    return coded ? work.decoder.Close() : OkStatus();
  }

  // From the planes at work.from to work.rows.
  void JoinRows(uint64_t count, Work* work) const {
    const size_t channels = shape_.channels();
    work->bytes.resize(count * shape_.raw_row_bytes());
    work->rows.resize(count * shape_.raw_row_bytes());
    Point(work->bytes.data(), form_.bytes.width * channels, count, &work->part);
    for (size_t c = 0; c < channels; ++c) {
      const uint8_t* part[nested::kPartPlanesMax] = {};
      uint8_t* bytes[kernels::kPlanesMax] = {};
      for (size_t p = 0; p < Planes(); ++p) part[p] = work->from[p * channels + c];
      for (size_t p = 0; p < form_.bytes.width; ++p) bytes[p] = work->part[p * channels + c];
      nested::Join(form_, coarse_ ? part : nullptr, coarse_ ? nullptr : part, count, bytes);
    }
    Point(work->rows.data(), count, shape_.raw_row_bytes(), &work->to);
    kernels::JoinPlanes(form_.bytes, work->part.data(), count, channels, work->to.data());
  }

  const SegmentShape& shape_;
  const Form form_;
  const bool coarse_;
};

class NestedCoarseCodec final : public SegmentFormat {
 public:
  bool lossy() const override { return true; }
  uint64_t StoredBytes(const SegmentShape& shape) const override {
    return ExemptBytes(shape) + Chunks(shape, /*coarse=*/true).BytesMax();
  }
  uint64_t StoredBytesMin(const SegmentShape& shape) const override {
    return ExemptBytes(shape) + Chunks(shape, /*coarse=*/true).BytesMin();
  }

  uint64_t EncodeSegment(const SegmentShape& shape, RowWindow& rows, uint8_t* out, kernels::HashCopy& hash,
                         uint64_t* nonfinite) const override {
    const Form form = nested::FormOf(shape.element, shape.stream);
    kernels::HashCopy unused(nullptr);
    uint8_t* to = out;
    to += EncodeRaw(shape, rows, 0, shape.exempt_first, to, unused);
    to += EncodeRaw(shape, rows, shape.tokens - shape.exempt_last, shape.exempt_last, to, unused);
    to = Chunks(shape, /*coarse=*/true).Encode(rows, to, [&](const uint8_t* data, uint64_t count) {
      *nonfinite += nested::CountNonfinite(form, count * shape.channels(), data);
    });
    const auto bytes = static_cast<uint64_t>(to - out);
    hash.Add(out, bytes);
    return bytes;
  }

  Status DecodeSegment(const SegmentShape& shape, Bytes stored, RowWindow& rows,
                       kernels::HashCopy& hash) const override {
    hash.Add(stored.data(), stored.size());
    const Form form = nested::FormOf(shape.element, shape.stream);
    kernels::HashCopy unused(nullptr);
    const uint8_t* from = stored.data();
    from += DecodeRaw(shape, from, rows, 0, shape.exempt_first, unused);
    DecodeRaw(shape, from, rows, shape.tokens - shape.exempt_last, shape.exempt_last, unused);
    return Chunks(shape, /*coarse=*/true)
        .Decode(stored.subspan(ExemptBytes(shape)), rows, [&](uint64_t token, uint64_t count, uint8_t* data) {
          nested::Centre(form, count * shape.channels(), data);
          DecodeRaw(shape, data, rows, shape.exempt_first + token, count, unused);
          return OkStatus();
        });
  }

 private:
  static uint64_t ExemptBytes(const SegmentShape& shape) {
    return (shape.exempt_first + shape.exempt_last) * shape.raw_row_bytes();
  }
};

// A segment is the checksum of the rows that are not exempt, as they were, and the chunks of their rest.
class NestedRestCodec final : public SegmentFormat {
 public:
  bool lossy() const override { return true; }
  uint64_t StoredBytes(const SegmentShape& shape) const override {
    return kHashBytes + Chunks(shape, /*coarse=*/false).BytesMax();
  }
  uint64_t StoredBytesMin(const SegmentShape& shape) const override {
    return kHashBytes + Chunks(shape, /*coarse=*/false).BytesMin();
  }

  uint64_t EncodeSegment(const SegmentShape& shape, RowWindow& rows, uint8_t* out, kernels::HashCopy& hash,
                         uint64_t*) const override {
    kernels::HashCopy all(nullptr);
    const uint8_t* end = Chunks(shape, /*coarse=*/false)
                             .Encode(rows, out + kHashBytes, [&](const uint8_t* data, uint64_t count) {
                               all.Add(data, count * shape.raw_row_bytes());
                             });
    StoreLe<uint64_t>(out, all.Digest());
    const auto bytes = static_cast<uint64_t>(end - out);
    hash.Add(out, bytes);
    return bytes;
  }

  Status DecodeSegment(const SegmentShape& shape, Bytes stored, RowWindow& rows,
                       kernels::HashCopy& hash) const override {
    hash.Add(stored.data(), stored.size());
    // An f32 holds every value of the narrower types.
    if (rows.element() != shape.element && rows.element() != KVT_ELEMENT_F32) {
      return Error(KVT_ERR_UNSUPPORTED,
                   absl::StrCat("nested_rest: rows of ", ElementName(rows.element()),
                                " do not hold what was coarse of ", ElementName(shape.element)));
    }
    const Form form = nested::FormOf(shape.element, shape.stream);
    kernels::HashCopy all(nullptr), unused(nullptr);
    std::vector<uint8_t>& whole = rows.Work<Work>().other;
    KVT_RETURN_IF_ERROR(
        Chunks(shape, /*coarse=*/false)
            .Decode(stored.subspan(kHashBytes), rows, [&](uint64_t token, uint64_t count, uint8_t* rest) {
              whole.resize(count * shape.raw_row_bytes());
              EncodeRaw(shape, rows, shape.exempt_first + token, count, whole.data(), unused);
              nested::Complete(form, count * shape.channels(), rest, whole.data());
              all.Add(whole.data(), whole.size());
              DecodeRaw(shape, whole.data(), rows, shape.exempt_first + token, count, unused);
              return OkStatus();
            }));
    if (all.Digest() != LoadLe<uint64_t>(stored.data())) {
      return Error(
          KVT_ERR_MISMATCH,
          "nested_rest: the rows did not become those that were encoded: the view does not hold what "
          "the nested_coarse frame of the same rows decodes to");
    }
    return OkStatus();
  }
};

}  // namespace

std::unique_ptr<const SegmentFormat> MakeNestedCoarseCodec() { return std::make_unique<NestedCoarseCodec>(); }
std::unique_ptr<const SegmentFormat> MakeNestedRestCodec() { return std::make_unique<NestedRestCodec>(); }

}  // namespace kvt
