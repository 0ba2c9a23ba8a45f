// The int8 codec's maths on the processor's widest vectors; common/int8.h has the layout and the reference.
// `rows` are pointers to contiguous rows of heads x dim elements, at any alignment. Thread-safe.
#ifndef KVARTET_KERNELS_CPU_INT8_H_
#define KVARTET_KERNELS_CPU_INT8_H_

#include "common/int8.h"

namespace kvt::kernels {

void Int8Encode(Element element, const void* const* rows, size_t count, size_t heads, size_t dim,
                uint8_t* out, uint64_t* nonfinite);
void Int8Decode(Element element, const uint8_t* in, size_t count, size_t heads, size_t dim,
                void* const* rows);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_INT8_H_
