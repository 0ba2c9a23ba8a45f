#include "codec/nested/parts.h"

#include "kvartet/model.h"

namespace kvt::nested {
namespace {

// Calls body(type of the element's bits).
template <typename Body>
void WithWord(uint32_t element, const Body& body) {
  if (element == KVT_ELEMENT_F32) return body(uint32_t{});
  body(uint16_t{});
}

template <typename Word, typename Body>
void ForWords(size_t count, uint8_t* elements, const Body& body) {
  for (size_t i = 0; i < count; ++i) {
    const auto word = LoadLe<Word>(elements + i * sizeof(Word));
    StoreLe<Word>(elements + i * sizeof(Word), static_cast<Word>(body(uint32_t{word}, i)));
  }
}

}  // namespace

Form FormOf(uint32_t element) {
  if (element == KVT_ELEMENT_F16) return {{2, 0}, 1, 2, 0x01ff, 0x7c00};
  if (element == KVT_ELEMENT_BF16) return {{2, 1}, 2, 1, 0x003f, 0x7f80};
  return {{4, 1}, 2, 3, 0x003fffff, 0x7f800000};
}

// The byte planes of bf16 and f32 have the sign in the lowest bit of the last one. A coarse byte of f16 keeps
// it at the top, as lossless's classes want it.
void Part(uint32_t element, const uint8_t* const* bytes, size_t tokens, uint8_t* const* coarse,
          uint8_t* const* rest) {
  const auto each = [tokens](uint8_t* to, const auto& byte) {
    for (size_t t = 0; t < tokens; ++t) to[t] = static_cast<uint8_t>(byte(t));
  };
  const uint8_t *first = bytes[0], *second = bytes[1];
  if (element == KVT_ELEMENT_F16) {
    if (coarse != nullptr)
      each(coarse[0], [=](size_t t) { return (first[t] & 0x80) | (first[t] >> 1 & 0x3f); });
    if (rest == nullptr) return;
    each(rest[0], [=](size_t t) { return first[t] & 1; });
    each(rest[1], [=](size_t t) { return second[t]; });
    return;
  }
  const uint8_t* last = element == KVT_ELEMENT_BF16 ? second : bytes[3];
  if (coarse != nullptr) {
    each(coarse[0], [=](size_t t) { return first[t]; });
    each(coarse[1], [=](size_t t) { return (second[t] >> 7 << 1) | (last[t] & 1); });
  }
  if (rest == nullptr) return;
  if (element == KVT_ELEMENT_BF16) return each(rest[0], [=](size_t t) { return second[t] >> 1 & 0x3f; });
  const uint8_t* third = bytes[2];
  each(rest[0], [=](size_t t) { return second[t] & 0x7f; });
  each(rest[1], [=](size_t t) { return third[t]; });
  each(rest[2], [=](size_t t) { return last[t] >> 1; });
}

void Join(uint32_t element, const uint8_t* const* coarse, const uint8_t* const* rest, size_t tokens,
          uint8_t* const* bytes) {
  // Bits of plane p of a part, 0 where there is none.
  const auto from = [](const uint8_t* const* part, size_t p, size_t t) -> uint32_t {
    return part == nullptr ? 0 : part[p][t];
  };
  for (size_t t = 0; t < tokens; ++t) {
    const uint32_t first = from(coarse, 0, t);
    if (element == KVT_ELEMENT_F16) {
      bytes[0][t] = static_cast<uint8_t>((first & 0x80) | (first & 0x3f) << 1 | (from(rest, 0, t) & 1));
      bytes[1][t] = static_cast<uint8_t>(from(rest, 1, t));
      continue;
    }
    const uint32_t second = from(coarse, 1, t), mantissa = second >> 1 << 7, sign = second & 1;
    bytes[0][t] = static_cast<uint8_t>(first);
    if (element == KVT_ELEMENT_BF16) {
      bytes[1][t] = static_cast<uint8_t>(mantissa | (from(rest, 0, t) & 0x3f) << 1 | sign);
      continue;
    }
    bytes[1][t] = static_cast<uint8_t>(mantissa | (from(rest, 0, t) & 0x7f));
    bytes[2][t] = static_cast<uint8_t>(from(rest, 1, t));
    bytes[3][t] = static_cast<uint8_t>(from(rest, 2, t) << 1 | sign);
  }
}

void Centre(uint32_t element, size_t count, uint8_t* elements) {
  const Form form = FormOf(element);
  const uint32_t middle = (form.dropped + 1) / 2;
  const uint32_t magnitude = form.exponent | (form.dropped + 1) | form.dropped;
  WithWord(element, [&](auto word) {
    ForWords<decltype(word)>(count, elements, [&](uint32_t bits, size_t) {
      const bool stays = (bits & magnitude) == 0 || (bits & form.exponent) == form.exponent;
      return stays ? bits : bits | middle;
    });
  });
}

void Complete(uint32_t element, size_t count, const uint8_t* rest, uint8_t* elements) {
  const uint32_t dropped = FormOf(element).dropped;
  WithWord(element, [&](auto word) {
    using Word = decltype(word);
    ForWords<Word>(count, elements, [&](uint32_t bits, size_t i) {
      return (bits & ~dropped) | (LoadLe<Word>(rest + i * sizeof(Word)) & dropped);
    });
  });
}

uint64_t CountNonfinite(uint32_t element, size_t count, const uint8_t* elements) {
  const uint32_t exponent = FormOf(element).exponent;
  uint64_t nonfinite = 0;
  WithWord(element, [&](auto word) {
    using Word = decltype(word);
    for (size_t i = 0; i < count; ++i)
      nonfinite += (LoadLe<Word>(elements + i * sizeof(Word)) & exponent) == exponent;
  });
  return nonfinite;
}

}  // namespace kvt::nested
