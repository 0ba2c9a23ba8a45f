// Fitting what codec dense needs to a calibration's sample: leading components, spreads, tables, and the
// ratios that steps give.
//
// Stateless and thread-safe.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_DENSE_FIT_H_
#define KVARTET_LIB_CODEC_TRANSFORM_DENSE_FIT_H_

#include <span>
#include <vector>

#include "codec/profile.h"

namespace kvt {

// The sampled rows of a group as components: values[j * rows + r].
struct DenseSample {
  const float* values = nullptr;
  size_t rows = 0;
};

// Sets leading and spread of all groups, which have their deviations, and facts->dense. `importance`: of each
// sampled row.
void FitDense(const std::vector<DenseSample>& samples, std::span<const int8_t> importance,
              ProfileFacts* facts);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_DENSE_FIT_H_
