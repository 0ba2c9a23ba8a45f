// The lossless codec: every bit of the rows in fewer bytes. Elements are parted into planes of bytes, and the
// bytes of a channel (of K, of a channel and a part of RoPE's turn) share a table with others like them.
#ifndef KVARTET_LIB_CODEC_LOSSLESS_LOSSLESS_H_
#define KVARTET_LIB_CODEC_LOSSLESS_LOSSLESS_H_

#include "codec/segment_codec.h"

namespace kvt {

std::unique_ptr<const SegmentFormat> MakeLosslessCodec();

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_LOSSLESS_LOSSLESS_H_
