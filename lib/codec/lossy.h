// LossyCodec: what codecs of records share. A segment holds the exempt first tokens raw, then the exempt last
// tokens raw, then the records of the tokens between them, whose layouts are in kernels/common/.
//
// Immutable, so thread-safe.
#ifndef KVARTET_LIB_CODEC_LOSSY_H_
#define KVARTET_LIB_CODEC_LOSSY_H_

#include "codec/segment_codec.h"
#include "common/element.h"

namespace kvt {

class LossyCodec : public SegmentCodec {
 public:
  bool lossy() const final { return true; }
  uint64_t StoredBytes(const SegmentShape& shape) const final;
  void Encode(const SegmentShape& shape, RowWindow& rows, uint8_t* out, kernels::HashCopy& hash,
              uint64_t* nonfinite) const final;
  void Decode(const SegmentShape& shape, const uint8_t* stored, RowWindow& rows,
              kernels::HashCopy& hash) const final;

 protected:
  // Tokens of a record, 1 to RowWindow::kRowsMax; the last record may have fewer.
  virtual uint64_t TokensPerRecord(const SegmentShape& shape) const = 0;
  virtual uint64_t RecordBytes(const SegmentShape& shape, uint64_t tokens) const = 0;
  // One record of `count` tokens, or `count` records of one token each.
  virtual void EncodeRecords(const SegmentShape& shape, kernels::Element element, const void* const* rows,
                             uint64_t count, uint8_t* out, uint64_t* nonfinite) const = 0;
  virtual void DecodeRecords(const SegmentShape& shape, kernels::Element element, const uint8_t* stored,
                             uint64_t count, void* const* rows) const = 0;

 private:
  uint64_t BatchBytes(const SegmentShape& shape, uint64_t count) const;
  template <typename Body>
  void ForBatches(const SegmentShape& shape, const Body& body) const;
};

// Symmetric bytes, one scale a token and head.
std::unique_ptr<const SegmentCodec> MakeInt8Codec();

// E4M3 or E5M2, one scale a token and head.
std::unique_ptr<const SegmentCodec> MakeFp8Codec(bool e5m2);

// Asymmetric codes of 2, 4 or 8 bits: stream 0 (K, or MLA's latent) by channel over groups of tokens, stream
// 1 (V) by token over groups of channels of a head.
std::unique_ptr<const SegmentCodec> MakeKiviCodec(uint32_t bits, uint32_t group_tokens,
                                                  uint32_t group_channels);

// Lloyd-Max levels of rotated heads, 2 to 4 bits, of stream 0 and of stream 1.
std::unique_ptr<const SegmentCodec> MakeRotatedCodec(uint32_t k_bits, uint32_t v_bits);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_LOSSY_H_
