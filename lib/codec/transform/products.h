// What the matrix products of a profile cost: the projection of all groups onto the components that are kept,
// and the metric. Everything else is small beside them (docs/transform.md).
//
// Stateless and thread-safe.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_PRODUCTS_H_
#define KVARTET_LIB_CODEC_TRANSFORM_PRODUCTS_H_

#include <vector>

#include "codec/profile.h"

namespace kvt {

// Millions of multiplications and additions a token, each way: by ratio, from the lowest that the profile is
// for in the codec.
struct Products {
  uint32_t ratio_min = 0;
  std::vector<double> mflop;
};

Products FixedProducts(const ProfileFacts& facts);
// Empty when the profile has no tables for codec dense.
Products DenseProducts(const ProfileFacts& facts);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_PRODUCTS_H_
