#include "codec/transform/sample.h"

namespace kvt {

uint64_t RowSample::NextSlot() {
  const uint64_t index = seen_++;
  if (index < kRows) {
    halves_.resize((index + 1) * columns_);
    importance_.resize(index + 1);
    return index;
  }
  // SplitMix64.
  random_ += 0x9e3779b97f4a7c15;
  uint64_t mixed = random_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31;
  const uint64_t slot = mixed % seen_;
  return slot < kRows ? slot : kNone;
}

}  // namespace kvt
