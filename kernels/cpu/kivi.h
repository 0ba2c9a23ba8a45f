// The KIVI codecs' maths on the processor's widest vectors; common/kivi.h has the layouts and the reference.
// `rows` are pointers to contiguous rows, at any alignment; `bits` is 2, 4 or 8. Thread-safe.
#ifndef KVARTET_KERNELS_CPU_KIVI_H_
#define KVARTET_KERNELS_CPU_KIVI_H_

#include "common/kivi.h"

namespace kvt::kernels {

void KiviTokenEncode(Element element, uint32_t bits, const void* const* rows, size_t count, size_t heads,
                     size_t dim, size_t group, uint8_t* out, uint64_t* nonfinite);
void KiviTokenDecode(Element element, uint32_t bits, const uint8_t* in, size_t count, size_t heads,
                     size_t dim, size_t group, void* const* rows);
void KiviChannelEncode(Element element, uint32_t bits, const void* const* rows, size_t tokens,
                       size_t channels, uint8_t* out, uint64_t* nonfinite);
void KiviChannelDecode(Element element, uint32_t bits, const uint8_t* in, size_t tokens, size_t channels,
                       void* const* rows);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_KIVI_H_
