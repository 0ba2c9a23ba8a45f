// Quantising one component of many tokens by a book of levels, and back.
//
// Stateless and thread-safe.
#ifndef KVARTET_KERNELS_CPU_TRANSFORM_CODES_H_
#define KVARTET_KERNELS_CPU_TRANSFORM_CODES_H_

#include <cstddef>
#include <cstdint>

namespace kvt::kernels {

// Levels in ascending order, 2^bits of them, and the bounds halfway between neighbours, 2^bits - 1.
struct Book {
  const float* levels = nullptr;
  const float* bounds = nullptr;
  uint32_t bits = 0;  // 1 to 8
};

// sums[t] += (values[t] * factor)^2.
void AddSquares(const float* values, size_t count, float factor, float* sums);

// codes[t] = the level nearest to values[t] * factor * factors[t]. True when an error is above `limit`
// somewhere.
bool QuantizeComponent(const Book& book, const float* values, size_t count, float factor,
                       const float* factors, float limit, uint8_t* codes);

// values[t] = level * factor * factors[t] for the codes from bit `first_bit` of `string` on; reads up to 3
// bytes behind the last code's first.
void DequantizeComponent(const Book& book, const uint8_t* string, uint64_t first_bit, size_t count,
                         float factor, const float* factors, float* values);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_TRANSFORM_CODES_H_
