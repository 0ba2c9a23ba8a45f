// The fidelity level of an engine, from a start-up probe: bits are compared, nothing is assumed. Pure
// functions.
#ifndef KVARTET_LIB_VERIFY_FIDELITY_H_
#define KVARTET_LIB_VERIFY_FIDELITY_H_

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "kvartet/verifier.h"

namespace kvt {

struct Fidelity {
  int32_t level = KVT_FIDELITY_N;
  float margin = 0;  // twice the largest difference seen, above 0 but at level C
};

// Parameters as those of kvt_fidelity_classify.
StatusOr<Fidelity> ClassifyFidelity(const float* alone, const float* batched, size_t rows, size_t vocabulary,
                                    const uint32_t* widths, const uint32_t* places);

}  // namespace kvt

#endif  // KVARTET_LIB_VERIFY_FIDELITY_H_
