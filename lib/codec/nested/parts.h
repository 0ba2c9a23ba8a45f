// How an element is parted into coarse bits and the rest: the sign, the exponent and one bit of the mantissa
// are coarse. Both parts are planes of bytes, one byte for an element in each.
//
// Stateless and thread-safe. Whatever bytes the planes have, rest planes change no coarse bit.
#ifndef KVARTET_LIB_CODEC_NESTED_PARTS_H_
#define KVARTET_LIB_CODEC_NESTED_PARTS_H_

#include "base/bytes.h"
#include "common/planes.h"

namespace kvt::nested {

inline constexpr size_t kPartPlanesMax = 3;

struct Form {
  kernels::PlaneShape bytes;    // of the whole element
  size_t coarse = 0, rest = 0;  // planes
  uint32_t dropped = 0;         // the rest's bits of an element
  uint32_t exponent = 0;        // its bits
};

// Of f32, f16 and bf16.
Form FormOf(uint32_t element);

// Parts the byte planes of one channel (kernels::SplitPlanes) or joins them. Null coarse or rest planes are
// not written, respectively count as 0.
void Part(uint32_t element, const uint8_t* const* bytes, size_t tokens, uint8_t* const* coarse,
          uint8_t* const* rest);
void Join(uint32_t element, const uint8_t* const* coarse, const uint8_t* const* rest, size_t tokens,
          uint8_t* const* bytes);

// Puts elements that have their coarse bits only into the middle of what they may have been. Zeros,
// infinities and NaN stay.
void Centre(uint32_t element, size_t count, uint8_t* elements);
// Replaces the bits that are not coarse by those of `rest`.
void Complete(uint32_t element, size_t count, const uint8_t* rest, uint8_t* elements);
// How many elements are infinite or NaN.
uint64_t CountNonfinite(uint32_t element, size_t count, const uint8_t* elements);

}  // namespace kvt::nested

#endif  // KVARTET_LIB_CODEC_NESTED_PARTS_H_
