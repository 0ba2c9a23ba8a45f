// The rotated codecs' maths on the processor's widest vectors; common/rotated.h has the layout and the
// reference. `rows` are pointers to contiguous rows of heads x dim elements, at any alignment; `bits` is 2, 3
// or 4 and `dim` at most kRotatedDimMax. Thread-safe.
#ifndef KVARTET_KERNELS_CPU_ROTATED_H_
#define KVARTET_KERNELS_CPU_ROTATED_H_

#include "common/rotated.h"

namespace kvt::kernels {

void RotatedEncode(Element element, uint32_t bits, const void* const* rows, size_t count, size_t heads,
                   size_t dim, uint8_t* out, uint64_t* nonfinite);
void RotatedDecode(Element element, uint32_t bits, const uint8_t* in, size_t count, size_t heads, size_t dim,
                   void* const* rows);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_ROTATED_H_
