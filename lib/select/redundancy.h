// Redundancy of keys, as R-KV (arXiv 2505.24133) measures it.
//
// Stateless and thread-safe.
#ifndef KVARTET_LIB_SELECT_REDUNDANCY_H_
#define KVARTET_LIB_SELECT_REDUNDANCY_H_

#include <vector>

#include "select/attention.h"

namespace kvt {

// How much each key repeats others: the mean of its cosines with all keys, where each key leaves out the most
// recent of those that resemble it by more than `similarity`, so that of many alike the newest counts as new.
// Softmax makes the result sum to 1.
std::vector<float> Redundancy(Rows keys, float similarity);

}  // namespace kvt

#endif  // KVARTET_LIB_SELECT_REDUNDANCY_H_
