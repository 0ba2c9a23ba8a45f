#include "codec/transform/sample.h"

#include "base/random.h"

namespace kvt {

uint64_t RowSample::NextSlot() {
  const uint64_t index = seen_++;
  if (index < kRows) {
    halves_.resize((index + 1) * columns_);
    importance_.resize(index + 1);
    return index;
  }
  const uint64_t slot = SplitMix64(&random_) % seen_;
  return slot < kRows ? slot : kNone;
}

}  // namespace kvt
