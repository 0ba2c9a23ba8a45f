// For vectors of up to 8 states: which of the next words each state takes, for every set of states that take
// one.
#ifndef KVARTET_KERNELS_COMMON_RANS_EXPAND_H_
#define KVARTET_KERNELS_COMMON_RANS_EXPAND_H_

#include <cstdint>

namespace kvt::kernels {

struct RansExpandTable {
  uint8_t places[256][8] = {};

  constexpr RansExpandTable() {
    for (uint32_t set = 0; set < 256; ++set) {
      uint8_t place = 0;
      for (uint32_t lane = 0; lane < 8; ++lane)
        if ((set >> lane & 1) != 0) places[set][lane] = place++;
    }
  }
};

inline constexpr RansExpandTable kRansExpand;

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_RANS_EXPAND_H_
