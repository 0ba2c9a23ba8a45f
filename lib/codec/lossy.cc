#include "codec/lossy.h"

#include <algorithm>

#include "codec/raw.h"

namespace kvt {
namespace {

// So much is hashed, then decoded while it is in the nearest cache.
constexpr uint64_t kBatchBytes = 16 * 1024;

}  // namespace

using kernels::Element;

uint64_t LossyCodec::StoredBytes(const SegmentShape& shape) const {
  const uint64_t step = TokensPerRecord(shape), coded = shape.coded();
  uint64_t bytes = (shape.exempt_first + shape.exempt_last) * shape.raw_row_bytes();
  bytes += coded / step * RecordBytes(shape, step);
  if (coded % step != 0) bytes += RecordBytes(shape, coded % step);
  return bytes;
}

uint64_t LossyCodec::BatchBytes(const SegmentShape& shape, uint64_t count) const {
  return TokensPerRecord(shape) == 1 ? count * RecordBytes(shape, 1) : RecordBytes(shape, count);
}

template <typename Body>
void LossyCodec::ForBatches(const SegmentShape& shape, const Body& body) const {
  uint64_t step = TokensPerRecord(shape);
  if (step == 1) step = std::clamp<uint64_t>(kBatchBytes / RecordBytes(shape, 1), 1, RowWindow::kRowsMax);
  const uint64_t end = shape.tokens - shape.exempt_last;
  for (uint64_t token = shape.exempt_first; token < end; token += step)
    body(token, std::min(step, end - token));
}

void LossyCodec::Encode(const SegmentShape& shape, RowWindow& rows, uint8_t* out, kernels::HashCopy& hash,
                        uint64_t* nonfinite) const {
  out += EncodeRaw(shape, rows, 0, shape.exempt_first, out, hash);
  out += EncodeRaw(shape, rows, shape.tokens - shape.exempt_last, shape.exempt_last, out, hash);
  ForBatches(shape, [&](uint64_t token, uint64_t count) {
    EncodeRecords(shape, Element{rows.element()}, rows.Read(token, count), count, out, nonfinite);
    const uint64_t bytes = BatchBytes(shape, count);
    hash.Add(out, bytes);
    out += bytes;
  });
}

void LossyCodec::Decode(const SegmentShape& shape, const uint8_t* stored, RowWindow& rows,
                        kernels::HashCopy& hash) const {
  stored += DecodeRaw(shape, stored, rows, 0, shape.exempt_first, hash);
  stored += DecodeRaw(shape, stored, rows, shape.tokens - shape.exempt_last, shape.exempt_last, hash);
  ForBatches(shape, [&](uint64_t token, uint64_t count) {
    const uint64_t bytes = BatchBytes(shape, count);
    hash.Add(stored, bytes);
    DecodeRecords(shape, Element{rows.element()}, stored, count, rows.Write(token, count));
    rows.Commit();
    stored += bytes;
  });
}

}  // namespace kvt
