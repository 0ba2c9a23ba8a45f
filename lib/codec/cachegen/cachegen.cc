#include "codec/cachegen/cachegen.h"

#include <algorithm>

#include "codec/cachegen/symbols.h"
#include "codec/raw.h"
#include "common/lossy.h"
#include "cpu/transform_rows.h"

namespace kvt {
namespace {

using kernels::Element;

constexpr size_t kGroupTokens = 10;
constexpr int32_t kMost = 127;
// Steps of differences in the first, the middle and the last third of the layers, in the root mean square of
// a head's values around the means of their channels.
constexpr float kBins[] = {0.5f, 1.0f, 1.5f};
constexpr uint64_t kHalfBytes = sizeof(uint16_t), kLengthBytes = sizeof(uint32_t);

uint64_t ChunkTokens(uint64_t channels) {
  return std::max<uint64_t>(lossless::ChunkTokens(channels) / kGroupTokens, 1) * kGroupTokens;
}

size_t Anchors(size_t tokens) { return (tokens + kGroupTokens - 1) / kGroupTokens; }

// The scales of a chunk: of each channel's anchors, then of each head's differences.
uint64_t ScaleBytes(const SegmentShape& shape) { return (shape.channels() + shape.heads) * kHalfBytes; }

// The memory that one call uses again for each of its segments.
struct Work {
  lossless::ChunkDecoder decoder;
  std::vector<float> tile, zeros;  // rows of a chunk, or of a part of it
  std::vector<uint8_t> anchors, differences;
  std::vector<double> variances;  // of channels
};

// Calls body(token, index among its kind, is an anchor) for the tokens [begin, end) of a chunk.
template <typename Body>
void ForTokens(size_t begin, size_t end, const Body& body) {
  for (size_t t = begin; t < end; ++t) {
    const size_t group = t / kGroupTokens;
    const bool anchor = t % kGroupTokens == 0;
    body(t, anchor ? group : t - group - 1, anchor);
  }
}

kernels::RowTile TileOf(const SegmentShape& shape, const RowWindow& rows, size_t count, const Work& work) {
  return {Element{rows.element()}, count, shape.heads, shape.dim, shape.channels(), work.zeros.data()};
}

class CachegenCodec final : public SegmentFormat {
 public:
  bool lossy() const override { return true; }
  uint64_t StoredBytes(const SegmentShape& shape) const override {
    return StoredBytesMin(shape) + shape.coded() * shape.channels();
  }
  uint64_t StoredBytesMin(const SegmentShape& shape) const override {
    const uint64_t step = ChunkTokens(shape.channels()), chunks = (shape.coded() + step - 1) / step;
    return ExemptBytes(shape) + chunks * (ScaleBytes(shape) + 2 * kLengthBytes);
  }

  uint64_t EncodeSegment(const SegmentShape& shape, RowWindow& rows, uint8_t* out, kernels::HashCopy& hash,
                         uint64_t* nonfinite) const override {
    kernels::HashCopy unused(nullptr);
    uint8_t* to = out;
    to += EncodeRaw(shape, rows, 0, shape.exempt_first, to, unused);
    to += EncodeRaw(shape, rows, shape.tokens - shape.exempt_last, shape.exempt_last, to, unused);
    const uint64_t step = ChunkTokens(shape.channels());
    for (uint64_t token = 0; token < shape.coded(); token += step)
      to += EncodeChunk(shape, rows, token, std::min(step, shape.coded() - token), to, nonfinite);
    const auto bytes = static_cast<uint64_t>(to - out);
    hash.Add(out, bytes);
    return bytes;
  }

  Status DecodeSegment(const SegmentShape& shape, Bytes stored, RowWindow& rows,
                       kernels::HashCopy& hash) const override {
    hash.Add(stored.data(), stored.size());
    kernels::HashCopy unused(nullptr);
    const uint8_t* from = stored.data();
    from += DecodeRaw(shape, from, rows, 0, shape.exempt_first, unused);
    DecodeRaw(shape, from, rows, shape.tokens - shape.exempt_last, shape.exempt_last, unused);
    stored = stored.subspan(ExemptBytes(shape));
    const uint64_t step = ChunkTokens(shape.channels());
    for (uint64_t token = 0; token < shape.coded(); token += step)
      KVT_RETURN_IF_ERROR(DecodeChunk(shape, &stored, rows, token, std::min(step, shape.coded() - token)));
    if (!stored.empty())
      return Error(KVT_ERR_CORRUPT, absl::StrCat("cachegen: ", stored.size(), " bytes too many"));
    return OkStatus();
  }

 private:
  static uint64_t ExemptBytes(const SegmentShape& shape) {
    return (shape.exempt_first + shape.exempt_last) * shape.raw_row_bytes();
  }

  static void LoadRows(const SegmentShape& shape, RowWindow& rows, uint64_t token, size_t tokens, Work* work,
                       uint64_t* nonfinite) {
    work->zeros.assign(shape.channels(), 0.0f);
    work->tile.resize(tokens * shape.channels());
    for (size_t done = 0; done < tokens; done += RowWindow::kRowsMax) {
      const size_t count = std::min(RowWindow::kRowsMax, tokens - done);
      kernels::LoadRows(TileOf(shape, rows, count, *work), {},
                        rows.Read(shape.exempt_first + token + done, count), 1.0f,
                        work->tile.data() + done * shape.channels(), nonfinite);
    }
  }

  // Quantises the anchors, and leaves differences to the quantised ones in the tile.
  static void TakeAnchors(const SegmentShape& shape, size_t tokens, Work* work, uint8_t* scales) {
    const size_t channels = shape.channels(), anchors = Anchors(tokens);
    work->anchors.resize(anchors * channels);
    for (size_t c = 0; c < channels; ++c) {
      float* column = work->tile.data() + c;
      float largest = 0;
      for (size_t t = 0; t < tokens; t += kGroupTokens)
        largest = std::max(largest, std::fabs(column[t * channels]));
      const uint16_t half = kernels::F16Up(largest / kMost);
      kernels::StoreHalf(half, scales, c);
      const float scale = kernels::F16ToF32(half), inverse = kernels::InverseOf(scale);
      float anchor = 0;
      ForTokens(0, tokens, [&](size_t t, size_t index, bool is_anchor) {
        float& value = column[t * channels];
        if (is_anchor) {
          const int32_t number = kernels::CodeOf(value, inverse, -kMost, kMost);
          work->anchors[c * anchors + index] = cachegen::SymbolOf(number);
          anchor = static_cast<float>(number) * scale;
        } else {
          value -= anchor;
        }
      });
    }
  }

  // Of the tile's channels.
  static void TakeVariances(const SegmentShape& shape, size_t tokens, Work* work) {
    const size_t channels = shape.channels();
    std::vector<double> sums(channels, 0.0), squares(channels, 0.0);
    for (size_t t = 0; t < tokens; ++t) {
      const float* row = work->tile.data() + t * channels;
      for (size_t c = 0; c < channels; ++c) {
        sums[c] += double{row[c]};
        squares[c] += double{row[c]} * double{row[c]};
      }
    }
    work->variances.resize(channels);
    const auto count = static_cast<double>(tokens);
    for (size_t c = 0; c < channels; ++c)
      work->variances[c] = std::max((squares[c] - sums[c] * sums[c] / count) / count, 0.0);
  }

  // A step that fits all differences of a head into a byte, whatever the spread of its values is.
  static uint16_t StepOf(const SegmentShape& shape, size_t head, size_t tokens, const Work& work) {
    double variance = 0;
    for (size_t e = 0; e < shape.dim; ++e) variance += work.variances[head * shape.dim + e];
    float largest = 0;
    ForTokens(0, tokens, [&](size_t t, size_t, bool is_anchor) {
      if (is_anchor) return;
      const float* values = work.tile.data() + t * shape.channels() + head * shape.dim;
      for (size_t e = 0; e < shape.dim; ++e) largest = std::max(largest, std::fabs(values[e]));
    });
    const auto spread = static_cast<float>(std::sqrt(variance / shape.dim));
    return kernels::F16Up(
        std::min(std::max(kBins[shape.third] * spread, largest / kMost), kernels::kLossyMax));
  }

  static void TakeDifferences(const SegmentShape& shape, size_t tokens, Work* work, uint8_t* scales) {
    const size_t channels = shape.channels(), count = tokens - Anchors(tokens);
    work->differences.resize(count * channels);
    for (size_t head = 0; head < shape.heads; ++head) {
      const uint16_t half = StepOf(shape, head, tokens, *work);
      kernels::StoreHalf(half, scales, head);
      const float inverse = kernels::InverseOf(kernels::F16ToF32(half));
      for (size_t c = head * shape.dim; c < (head + 1) * shape.dim; ++c) {
        const float* column = work->tile.data() + c;
        uint8_t* symbols = work->differences.data() + c * count;
        ForTokens(0, tokens, [&](size_t t, size_t index, bool is_anchor) {
          if (!is_anchor)
            symbols[index] =
                cachegen::SymbolOf(kernels::CodeOf(column[t * channels], inverse, -kMost, kMost));
        });
      }
    }
  }

  static uint64_t EncodeChunk(const SegmentShape& shape, RowWindow& rows, uint64_t token, size_t tokens,
                              uint8_t* out, uint64_t* nonfinite) {
    Work& work = rows.Work<Work>();
    const size_t channels = shape.channels();
    LoadRows(shape, rows, token, tokens, &work, nonfinite);
    TakeVariances(shape, tokens, &work);
    TakeAnchors(shape, tokens, &work, out);
    TakeDifferences(shape, tokens, &work, out + channels * kHalfBytes);
    uint8_t* to = out + ScaleBytes(shape);
    to += cachegen::EncodeSymbolPlane(work.anchors.data(), Anchors(tokens), channels, to);
    to += cachegen::EncodeSymbolPlane(work.differences.data(), tokens - Anchors(tokens), channels, to);
    return static_cast<uint64_t>(to - out);
  }

  static Status DecodeChunk(const SegmentShape& shape, Bytes* stored, RowWindow& rows, uint64_t token,
                            size_t tokens) {
    Work& work = rows.Work<Work>();
    const size_t channels = shape.channels(), anchors = Anchors(tokens), others = tokens - anchors;
    if (stored->size() < ScaleBytes(shape)) return Error(KVT_ERR_CORRUPT, "cachegen: it ends in its scales");
    const uint8_t* scales = stored->data();
    *stored = stored->subspan(ScaleBytes(shape));
    KVT_RETURN_IF_ERROR(cachegen::DecodeSymbolPlane(anchors, channels, stored, &work.decoder, &work.anchors));
    KVT_RETURN_IF_ERROR(
        cachegen::DecodeSymbolPlane(others, channels, stored, &work.decoder, &work.differences));
    const size_t step = std::min<uint64_t>(lossless::BlockTokens(channels), RowWindow::kRowsMax);
    work.zeros.assign(channels, 0.0f);
    work.tile.resize(step * channels);
    for (size_t done = 0; done < tokens; done += step) {
      const size_t count = std::min(step, tokens - done);
      for (size_t c = 0; c < channels; ++c) {
        const float scale = kernels::LoadScale(scales, c);
        const float difference = kernels::LoadScale(scales, channels + c / shape.dim);
        const uint8_t* anchor = work.anchors.data() + c * anchors;
        const uint8_t* symbols = work.differences.data() + c * others;
        ForTokens(done, done + count, [&](size_t t, size_t index, bool is_anchor) {
          float value = static_cast<float>(cachegen::NumberOf(anchor[t / kGroupTokens])) * scale;
          if (!is_anchor) value += static_cast<float>(cachegen::NumberOf(symbols[index])) * difference;
          work.tile[(t - done) * channels + c] = value;
        });
      }
      kernels::StoreRows(TileOf(shape, rows, count, work), {}, work.tile.data(), 1.0f,
                         rows.Write(shape.exempt_first + token + done, count));
      rows.Commit();
    }
    return OkStatus();
  }
};

}  // namespace

std::unique_ptr<const SegmentFormat> MakeCachegenCodec() { return std::make_unique<CachegenCodec>(); }

}  // namespace kvt
