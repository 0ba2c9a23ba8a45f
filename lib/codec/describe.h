// A frame's header as JSON, for people and tools.
#ifndef KVARTET_LIB_CODEC_DESCRIBE_H_
#define KVARTET_LIB_CODEC_DESCRIBE_H_

#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace kvt {

// After ParseFrame's checks; reads no payload. Stateless and thread-safe.
StatusOr<std::string> DescribeFrame(Bytes frame);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_DESCRIBE_H_
