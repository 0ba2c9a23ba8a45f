#include "codec/lossless/lossless.h"

#include <cstring>

#include "codec/lossless/chunk.h"
#include "common/element.h"
#include "cpu/planes.h"

namespace kvt {
namespace {

using kernels::Element;
using lossless::BlockTokens;
using lossless::ChunkShape;
using lossless::ChunkTokens;

constexpr uint64_t kLengthBytes = sizeof(uint32_t);

uint64_t Chunks(const SegmentShape& shape) {
  const uint64_t tokens = ChunkTokens(shape.channels());
  return (shape.tokens + tokens - 1) / tokens;
}

// The memory that one call uses again for each of its segments.
struct Work {
  lossless::ChunkDecoder decoder;
  std::vector<uint8_t> rows, planes;
  std::vector<const uint8_t*> from;
  std::vector<uint8_t*> to;
};

class LosslessCodec final : public SegmentFormat {
 public:
  bool lossy() const override { return false; }
  uint64_t StoredBytes(const SegmentShape& shape) const override {
    return shape.decoded_bytes() + Chunks(shape) * kLengthBytes;
  }
  uint64_t StoredBytesMin(const SegmentShape& shape) const override { return Chunks(shape) * kLengthBytes; }

  uint64_t EncodeSegment(const SegmentShape& shape, RowWindow& rows, uint8_t* out, kernels::HashCopy& hash,
                         uint64_t*) const override {
    const lossless::Turns turns = lossless::TurnsOf(shape);
    const uint64_t step = ChunkTokens(shape.channels());
    uint8_t* to = out;
    for (uint64_t token = 0; token < shape.tokens; token += step) {
      const uint64_t tokens = std::min(step, shape.tokens - token),
                     raw_bytes = tokens * shape.raw_row_bytes();
      uint8_t* length = to;
      to += kLengthBytes;
      ReadRows(shape, rows, token, tokens, to);
      std::vector<uint8_t> coded;
      if (shape.channels() <= lossless::kChannelsMax) coded = EncodeChunk(shape, to, tokens, turns, rows);
      const bool pays = !coded.empty() && coded.size() < raw_bytes;
      if (pays) std::memcpy(to, coded.data(), coded.size());
      const uint64_t bytes = pays ? coded.size() : raw_bytes;
      StoreLe<uint32_t>(length, static_cast<uint32_t>(bytes));
      to += bytes;
    }
    const auto bytes = static_cast<uint64_t>(to - out);
    hash.Add(out, bytes);
    return bytes;
  }

  Status DecodeSegment(const SegmentShape& shape, Bytes stored, RowWindow& rows,
                       kernels::HashCopy& hash) const override {
    hash.Add(stored.data(), stored.size());
    const uint64_t step = ChunkTokens(shape.channels());
    for (uint64_t token = 0; token < shape.tokens; token += step) {
      const uint64_t tokens = std::min(step, shape.tokens - token),
                     raw_bytes = tokens * shape.raw_row_bytes();
      if (stored.size() < kLengthBytes)
        return Error(KVT_ERR_CORRUPT, "lossless: it ends in a chunk's length");
      const uint64_t length = LoadLe<uint32_t>(stored.data());
      stored = stored.subspan(kLengthBytes);
      if (length > stored.size() || length > raw_bytes) {
        return Error(KVT_ERR_CORRUPT, absl::StrCat("lossless: a chunk of ", length, " bytes in ",
                                                   stored.size(), ", raw ", raw_bytes));
      }
      const Bytes chunk = stored.first(length);
      stored = stored.subspan(length);
      if (length == raw_bytes) {
        WriteRawRows(shape, chunk.data(), rows, token, tokens);
      } else {
        KVT_RETURN_IF_ERROR(DecodeChunk(shape, chunk, rows, token, tokens));
      }
    }
    if (!stored.empty())
      return Error(KVT_ERR_CORRUPT, absl::StrCat("lossless: ", stored.size(), " bytes too many"));
    return OkStatus();
  }

 private:
  // Rows of the frame's element type, one after another.
  static void ReadRows(const SegmentShape& shape, RowWindow& rows, uint64_t token, uint64_t tokens,
                       uint8_t* to) {
    const bool same = rows.element() == shape.element;
    for (uint64_t done = 0; done < tokens;) {
      const uint64_t count = std::min<uint64_t>(tokens - done, RowWindow::kRowsMax);
      const void* const* from = rows.Read(token + done, count);
      for (uint64_t i = 0; i < count; ++i, to += shape.raw_row_bytes()) {
        if (same) {
          std::memcpy(to, from[i], shape.raw_row_bytes());
        } else {
          kernels::ConvertElements(Element{rows.element()}, from[i], Element{shape.element}, to,
                                   shape.channels());
        }
      }
      done += count;
    }
  }

  static std::vector<uint8_t> EncodeChunk(const SegmentShape& shape, const uint8_t* data, uint64_t tokens,
                                          const lossless::Turns& turns, RowWindow& rows) {
    Work& work = rows.Work<Work>();
    const ChunkShape chunk = {lossless::PlanesOf(shape.element), tokens, shape.channels()};
    const size_t planes = chunk.planes.width * chunk.channels;
    work.planes.resize(planes * tokens);
    work.from.resize(std::max<size_t>(tokens, planes));
    work.to.resize(planes);
    for (size_t t = 0; t < tokens; ++t) work.from[t] = data + t * shape.raw_row_bytes();
    for (size_t i = 0; i < planes; ++i) work.to[i] = work.planes.data() + i * tokens;
    kernels::SplitPlanes(chunk.planes, work.from.data(), tokens, chunk.channels, work.to.data());
    work.from.assign(work.to.begin(), work.to.end());
    return lossless::EncodeChunk(chunk, work.from, turns);
  }

  static void WriteRawRows(const SegmentShape& shape, const uint8_t* from, RowWindow& rows, uint64_t token,
                           uint64_t tokens) {
    for (uint64_t done = 0; done < tokens;) {
      const uint64_t count = std::min<uint64_t>(tokens - done, RowWindow::kRowsMax);
      void* const* to = rows.Write(token + done, count);
      for (uint64_t i = 0; i < count; ++i, from += shape.raw_row_bytes()) WriteRow(shape, from, rows, to[i]);
      rows.Commit();
      done += count;
    }
  }

  static void WriteRow(const SegmentShape& shape, const uint8_t* from, const RowWindow& rows, void* to) {
    if (rows.element() == shape.element) {
      std::memcpy(to, from, shape.raw_row_bytes());
    } else {
      kernels::ConvertElements(Element{shape.element}, from, Element{rows.element()}, to, shape.channels());
    }
  }

  static Status DecodeChunk(const SegmentShape& shape, Bytes coded, RowWindow& rows, uint64_t token,
                            uint64_t tokens) {
    if (shape.channels() > lossless::kChannelsMax)
      return Error(KVT_ERR_CORRUPT, absl::StrCat("lossless: a coded chunk of ", shape.channels(),
                                                 " channels, the most are ", lossless::kChannelsMax));
    Work& work = rows.Work<Work>();
    const ChunkShape chunk = {lossless::PlanesOf(shape.element), tokens, shape.channels()};
    KVT_RETURN_IF_ERROR(work.decoder.Open(chunk, coded));
    const uint64_t step = BlockTokens(chunk.channels);
    const bool same = rows.element() == shape.element;
    if (!same) work.rows.resize(step * shape.raw_row_bytes());
    work.to.resize(step);
    for (uint64_t done = 0; done < tokens; done += step) {
      const uint64_t count = std::min(step, tokens - done);
      KVT_RETURN_IF_ERROR(work.decoder.Next(count));
      void* const* to = rows.Write(token + done, count);
      for (uint64_t t = 0; t < count; ++t)
        work.to[t] = same ? static_cast<uint8_t*>(to[t]) : work.rows.data() + t * shape.raw_row_bytes();
      kernels::JoinPlanes(chunk.planes, work.decoder.planes(), count, chunk.channels, work.to.data());
      if (!same) {
        for (uint64_t t = 0; t < count; ++t) WriteRow(shape, work.to[t], rows, to[t]);
      }
      rows.Commit();
    }
    return work.decoder.Close();
  }
};

}  // namespace

std::unique_ptr<const SegmentFormat> MakeLosslessCodec() { return std::make_unique<LosslessCodec>(); }

}  // namespace kvt
