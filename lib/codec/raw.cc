#include "codec/raw.h"

#include <algorithm>

#include "common/element.h"

namespace kvt {
namespace {

using kernels::Element;

static_assert(static_cast<uint32_t>(Element::kF32) == KVT_ELEMENT_F32 &&
              static_cast<uint32_t>(Element::kF16) == KVT_ELEMENT_F16 &&
              static_cast<uint32_t>(Element::kBf16) == KVT_ELEMENT_BF16);

class RawCodec final : public SegmentCodec {
 public:
  bool lossy() const override { return false; }
  uint64_t StoredBytes(const SegmentShape& shape) const override { return shape.decoded_bytes(); }
  void Encode(const SegmentShape& shape, RowWindow& rows, uint8_t* out, kernels::HashCopy& hash,
              uint64_t*) const override {
    EncodeRaw(shape, rows, 0, shape.tokens, out, hash);
  }
  void Decode(const SegmentShape& shape, const uint8_t* stored, RowWindow& rows,
              kernels::HashCopy& hash) const override {
    DecodeRaw(shape, stored, rows, 0, shape.tokens, hash);
  }
};

}  // namespace

uint64_t EncodeRaw(const SegmentShape& shape, RowWindow& rows, uint64_t token, uint64_t count, uint8_t* out,
                   kernels::HashCopy& hash) {
  const uint64_t row_bytes = shape.raw_row_bytes();
  for (uint64_t done = 0; done < count;) {
    const RowWindow::Run run = rows.Contiguous(token + done, count - done);
    uint8_t* to = out + done * row_bytes;
    if (rows.element() != shape.element) {
      kernels::ConvertElements(Element{rows.element()}, rows.Read(token + done, 1)[0], Element{shape.element},
                               to, shape.channels());
      hash.Add(to, row_bytes);
      ++done;
      continue;
    }
    const void* from = run.data != nullptr ? run.data : rows.Read(token + done, 1)[0];
    hash.AddAndCopy(from, run.rows * row_bytes, to);
    done += run.rows;
  }
  return count * row_bytes;
}

uint64_t DecodeRaw(const SegmentShape& shape, const uint8_t* stored, RowWindow& rows, uint64_t token,
                   uint64_t count, kernels::HashCopy& hash) {
  const uint64_t row_bytes = shape.raw_row_bytes();
  for (uint64_t done = 0; done < count;) {
    const RowWindow::Run run = rows.Contiguous(token + done, count - done);
    const uint8_t* from = stored + done * row_bytes;
    if (run.data != nullptr && rows.element() == shape.element) {
      hash.AddAndCopy(from, run.rows * row_bytes, run.data);
      done += run.rows;
      continue;
    }
    void* to = rows.Write(token + done, 1)[0];
    if (rows.element() == shape.element) {
      hash.AddAndCopy(from, row_bytes, to);
    } else {
      hash.Add(from, row_bytes);
      kernels::ConvertElements(Element{shape.element}, from, Element{rows.element()}, to, shape.channels());
    }
    rows.Commit();
    ++done;
  }
  return count * row_bytes;
}

std::unique_ptr<const SegmentCodec> MakeRawCodec() { return std::make_unique<RawCodec>(); }

}  // namespace kvt
