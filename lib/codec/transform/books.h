// Books of levels by Lloyd's algorithm, and how much of the variance they lose.
//
// Stateless and thread-safe.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_BOOKS_H_
#define KVARTET_LIB_CODEC_TRANSFORM_BOOKS_H_

#include <vector>

#include "codec/profile.h"

namespace kvt {

// The bounds halfway between neighbours.
std::vector<float> BoundsOf(const std::vector<float>& levels);

// The book of 2^bits levels that fits the samples, which come back sorted. At least one sample.
ProfileBook FitBook(uint32_t bits, std::vector<float>* samples);

// What a normal distribution gives: the book to use where there are no samples.
std::vector<float> NormalSamples();

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_BOOKS_H_
