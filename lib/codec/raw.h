// The raw codec: rows in the frame's element type, token after token. Other codecs keep exempt tokens so.
#ifndef KVARTET_LIB_CODEC_RAW_H_
#define KVARTET_LIB_CODEC_RAW_H_

#include "codec/segment_codec.h"

namespace kvt {

// Writes, respectively reads, `count` rows from token `token` on; returns the bytes.
uint64_t EncodeRaw(const SegmentShape& shape, RowWindow& rows, uint64_t token, uint64_t count, uint8_t* out,
                   kernels::HashCopy& hash);
uint64_t DecodeRaw(const SegmentShape& shape, const uint8_t* stored, RowWindow& rows, uint64_t token,
                   uint64_t count, kernels::HashCopy& hash);

std::unique_ptr<const SegmentCodec> MakeRawCodec();

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_RAW_H_
