// K-means over a few hundred rows, to find those that stand for the others.
//
// Stateless and thread-safe; the same rows and seed give the same result on the same kind of processor.
#ifndef KVARTET_LIB_SELECT_CLUSTER_H_
#define KVARTET_LIB_SELECT_CLUSTER_H_

#include <vector>

#include "select/attention.h"

namespace kvt {

// Of each of `count` clusters the row nearest its centre: `count` indices, ascending. 1 <= count <= rows.
std::vector<uint32_t> Representatives(const Rows& rows, size_t count, uint64_t seed);

}  // namespace kvt

#endif  // KVARTET_LIB_SELECT_CLUSTER_H_
