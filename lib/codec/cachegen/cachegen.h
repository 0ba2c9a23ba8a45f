// CacheGen (arXiv 2310.07240) on segments: of each ten tokens the first is an anchor in 8 bits, the others
// are differences to it in steps that are coarser in later layers, and both are entropy coded with tables
// that channels share.
#ifndef KVARTET_LIB_CODEC_CACHEGEN_CACHEGEN_H_
#define KVARTET_LIB_CODEC_CACHEGEN_CACHEGEN_H_

#include "codec/segment_codec.h"

namespace kvt {

std::unique_ptr<const SegmentFormat> MakeCachegenCodec();

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_CACHEGEN_CACHEGEN_H_
