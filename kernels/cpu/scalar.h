// The scalar quantiser of kernels/common/scalar.h, over many tokens at the same time.
//
// Stateless and thread-safe. Codes may differ from the reference's where costs are equal but for rounding.
#ifndef KVARTET_KERNELS_CPU_SCALAR_H_
#define KVARTET_KERNELS_CPU_SCALAR_H_

#include "common/scalar.h"

namespace kvt::kernels {

// As reference::ScalarCodes.
void ScalarCodes(const TrellisContext& context, const float* values, const float* factors,
                 const uint16_t* tables, size_t count, int16_t* codes);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_SCALAR_H_
