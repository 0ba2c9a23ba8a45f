// How an element is parted into coarse bits and the rest: the sign, the exponent and the first bits of the
// mantissa are coarse, two for K and one for V, which needs less. Both parts are planes of bytes, one byte
// for an element in each.
//
// Stateless and thread-safe. Whatever bytes the planes have, rest planes change no coarse bit.
#ifndef KVARTET_LIB_CODEC_NESTED_PARTS_H_
#define KVARTET_LIB_CODEC_NESTED_PARTS_H_

#include "base/bytes.h"
#include "common/planes.h"

namespace kvt::nested {

inline constexpr size_t kPartPlanesMax = 3;

struct Form {
  uint32_t element = 0;
  uint32_t kept = 0;            // bits of the mantissa that are coarse
  kernels::PlaneShape bytes;    // of the whole element
  size_t coarse = 0, rest = 0;  // planes
  uint32_t dropped = 0;         // the rest's bits of an element
  uint32_t exponent = 0;        // its bits
};

// Of f32, f16 and bf16; stream 0 is K, or MLA's latent.
Form FormOf(uint32_t element, uint32_t stream);

// Parts the byte planes of one channel (kernels::SplitPlanes) or joins them. Of coarse and rest one is null:
// it is not written, respectively counts as 0.
void Part(const Form& form, const uint8_t* const* bytes, size_t tokens, uint8_t* const* coarse,
          uint8_t* const* rest);
void Join(const Form& form, const uint8_t* const* coarse, const uint8_t* const* rest, size_t tokens,
          uint8_t* const* bytes);

// Puts elements that have their coarse bits only into the middle of what they may have been. Zeros,
// infinities and NaN stay.
void Centre(const Form& form, size_t count, uint8_t* elements);
// Replaces the bits that are not coarse by those of `rest`.
void Complete(const Form& form, size_t count, const uint8_t* rest, uint8_t* elements);
// How many elements are infinite or NaN.
uint64_t CountNonfinite(const Form& form, size_t count, const uint8_t* elements);

}  // namespace kvt::nested

#endif  // KVARTET_LIB_CODEC_NESTED_PARTS_H_
