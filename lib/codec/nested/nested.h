// The nested codecs: the bits of rows in two frames. nested_coarse has the signs, the exponents and the first
// bits of mantissas, and reads like the frame of any lossy codec. nested_rest has all other bits: decoded
// into rows that hold what the coarse frame gave, it makes them what they were, bit for bit.
#ifndef KVARTET_LIB_CODEC_NESTED_NESTED_H_
#define KVARTET_LIB_CODEC_NESTED_NESTED_H_

#include "codec/segment_codec.h"

namespace kvt {

std::unique_ptr<const SegmentFormat> MakeNestedCoarseCodec();
std::unique_ptr<const SegmentFormat> MakeNestedRestCodec();

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_NESTED_NESTED_H_
