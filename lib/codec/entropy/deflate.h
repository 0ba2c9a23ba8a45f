// DEFLATE (RFC 1950) by zlib: bytes to fewer bytes and back.
//
// Stateless and thread-safe. Inflating is safe on hostile bytes: it fills exactly the output that was asked
// for and takes exactly the input that is there.
#ifndef KVARTET_LIB_CODEC_ENTROPY_DEFLATE_H_
#define KVARTET_LIB_CODEC_ENTROPY_DEFLATE_H_

#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace kvt {

// At most 4 GiB - 1 bytes, at zlib's level 6. Empty when the result is not shorter than the input.
std::vector<uint8_t> Deflate(Bytes bytes);

// KVT_ERR_CORRUPT.
Status Inflate(Bytes deflated, MutableBytes out);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_ENTROPY_DEFLATE_H_
