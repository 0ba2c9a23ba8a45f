// Decoding of interleaved range coding on the processor's widest vectors; common/rans.h has the stream and
// the reference, whose symbols and states these are, also for bytes that no coder wrote. Thread-safe.
#ifndef KVARTET_KERNELS_CPU_RANS_H_
#define KVARTET_KERNELS_CPU_RANS_H_

#include "common/rans.h"

namespace kvt::kernels {

// Whether a gather is taken to be slower than a load for each lane: on AMD's processors; measured on Zen 5.
bool SlowGather();

// One run of a stream that RansOpen opened. Writes exactly `count` bytes, whatever the stream holds.
// `singly`: without gathers.
void RansDecode(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count,
                bool singly = SlowGather());

// Fills 2^bits entries; the frequencies add up to 2^bits and none exceeds 4,095.
void RansFillEntries(const uint16_t frequencies[kRansSymbols], uint32_t bits, uint32_t* entries);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_RANS_H_
