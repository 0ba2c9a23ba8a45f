// Rows of elements parted into planes of bytes, channel after channel: plane 0 has the byte of each element
// that says most (sign and exponent), the last plane the byte that says least. The layout and the reference.
#ifndef KVARTET_KERNELS_COMMON_PLANES_H_
#define KVARTET_KERNELS_COMMON_PLANES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvt::kernels {

inline constexpr size_t kPlanesMax = 4;

// Elements of `width` bytes (1, 2 or 4), `rotate` bits of which (0 or 1) move from the top to the bottom
// first, so that the exponents of bf16 and f32 fill plane 0.
struct PlaneShape {
  size_t width = 0;
  int rotate = 0;
};

// Element c of token t is at rows[t] + c x width, its byte in plane p at planes[p x channels + c][t].
namespace reference {

template <typename Word>
void SplitPlanes(int rotate, const uint8_t* const* rows, size_t token_begin, size_t token_end,
                 size_t channel_begin, size_t channel_end, size_t channels, uint8_t* const* planes) {
  constexpr int kBits = 8 * sizeof(Word);
  for (size_t t = token_begin; t < token_end; ++t) {
    for (size_t c = channel_begin; c < channel_end; ++c) {
      Word word;
      std::memcpy(&word, rows[t] + c * sizeof word, sizeof word);
      if (rotate != 0) word = static_cast<Word>(word << 1 | word >> (kBits - 1));
      for (size_t p = 0; p < sizeof word; ++p)
        planes[p * channels + c][t] = static_cast<uint8_t>(word >> (kBits - 8 * (p + 1)));
    }
  }
}

template <typename Word>
void JoinPlanes(int rotate, const uint8_t* const* planes, size_t token_begin, size_t token_end,
                size_t channel_begin, size_t channel_end, size_t channels, uint8_t* const* rows) {
  constexpr int kBits = 8 * sizeof(Word);
  for (size_t t = token_begin; t < token_end; ++t) {
    for (size_t c = channel_begin; c < channel_end; ++c) {
      Word word = 0;
      for (size_t p = 0; p < sizeof word; ++p)
        word =
            static_cast<Word>(word | static_cast<Word>(planes[p * channels + c][t]) << (kBits - 8 * (p + 1)));
      if (rotate != 0) word = static_cast<Word>(word >> 1 | word << (kBits - 1));
      std::memcpy(rows[t] + c * sizeof word, &word, sizeof word);
    }
  }
}

}  // namespace reference
}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_PLANES_H_
