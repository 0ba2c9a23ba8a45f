// Decoding of interleaved range coding on the processor's widest vectors; common/rans.h has the stream and
// the reference, whose symbols and states these are, also for bytes that no coder wrote. Thread-safe.
#ifndef KVARTET_KERNELS_CPU_RANS_H_
#define KVARTET_KERNELS_CPU_RANS_H_

#include "common/rans.h"

namespace kvt::kernels {

// One run of a stream that RansOpen opened. Writes exactly `count` bytes, whatever the stream holds.
void RansDecode(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_RANS_H_
