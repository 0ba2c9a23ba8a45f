// The fp8 codecs' maths on the processor's widest vectors; common/fp8.h has the layout and the reference.
// `rows` are pointers to contiguous rows of heads x dim elements, at any alignment. Thread-safe.
#ifndef KVARTET_KERNELS_CPU_FP8_H_
#define KVARTET_KERNELS_CPU_FP8_H_

#include "common/fp8.h"

namespace kvt::kernels {

void Fp8Encode(Fp8 format, Element element, const void* const* rows, size_t count, size_t heads, size_t dim,
               uint8_t* out, uint64_t* nonfinite);
void Fp8Decode(Fp8 format, Element element, const uint8_t* in, size_t count, size_t heads, size_t dim,
               void* const* rows);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_FP8_H_
