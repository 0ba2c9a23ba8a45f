// The forward walk of the trellis of kernels/common/trellis.h, over many tokens at the same time.
//
// Stateless and thread-safe. The bits may differ from the reference's where costs are equal but for rounding.
#ifndef KVARTET_KERNELS_CPU_TRELLIS_H_
#define KVARTET_KERNELS_CPU_TRELLIS_H_

#include "common/trellis.h"

namespace kvt::kernels {

// As reference::TrellisStep.
void TrellisStep(const TrellisContext& context, const float* values, const float* factors,
                 const uint16_t* tables, size_t count, size_t stride, float* costs, uint8_t* arrivals);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_TRELLIS_H_
