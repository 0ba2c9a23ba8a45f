#include "codec/nested/parts.h"

#include "kvartet/model.h"

namespace kvt::nested {
namespace {

// Calls body(type of the element's bits).
template <typename Body>
void WithWord(const Form& form, const Body& body) {
  if (form.element == KVT_ELEMENT_F32) return body(uint32_t{});
  body(uint16_t{});
}

template <typename Word, typename Body>
void ForWords(size_t count, uint8_t* elements, const Body& body) {
  for (size_t i = 0; i < count; ++i) {
    const auto word = LoadLe<Word>(elements + i * sizeof(Word));
    StoreLe<Word>(elements + i * sizeof(Word), static_cast<Word>(body(uint32_t{word}, i)));
  }
}

// to[t] = byte(t).
template <typename Body>
void Fill(size_t tokens, uint8_t* to, const Body& byte) {
  for (size_t t = 0; t < tokens; ++t) to[t] = static_cast<uint8_t>(byte(t));
}

constexpr uint32_t Low(uint32_t bits) { return (1u << bits) - 1; }

}  // namespace

Form FormOf(uint32_t element, uint32_t stream) {
  const uint32_t kept = stream == 0 ? 2 : 1;
  const size_t f16_rest = kept == 2 ? 1 : 2;
  if (element == KVT_ELEMENT_F16) return {element, kept, {2, 0}, 1, f16_rest, Low(10 - kept), 0x7c00};
  if (element == KVT_ELEMENT_BF16) return {element, kept, {2, 1}, 2, 1, Low(7 - kept), 0x7f80};
  return {element, kept, {4, 1}, 2, 3, Low(23 - kept), 0x7f800000};
}

// The byte planes of bf16 and f32 have the sign in the lowest bit of the last one. A coarse byte of f16 keeps
// it at the top, as lossless's classes want it.
void Part(const Form& form, const uint8_t* const* bytes, size_t tokens, uint8_t* const* coarse,
          uint8_t* const* rest) {
  const uint8_t *first = bytes[0], *second = bytes[1];
  const uint32_t kept = form.kept;
  if (form.element == KVT_ELEMENT_F16) {
    const uint32_t less = 2 - kept;
    if (coarse != nullptr)
      Fill(tokens, coarse[0], [=](size_t t) { return (first[t] & 0x80) | (first[t] & 0x7f) >> less; });
    if (rest == nullptr) return;
    if (less != 0) Fill(tokens, rest[0], [=](size_t t) { return first[t] & Low(less); });
    Fill(tokens, rest[form.rest - 1], [=](size_t t) { return second[t]; });
    return;
  }
  const uint8_t* last = bytes[form.bytes.width - 1];
  if (coarse != nullptr) {
    Fill(tokens, coarse[0], [=](size_t t) { return first[t]; });
    Fill(tokens, coarse[1], [=](size_t t) { return second[t] >> (8 - kept) << 1 | (last[t] & 1); });
  }
  if (rest == nullptr) return;
  if (form.element == KVT_ELEMENT_BF16) {
    Fill(tokens, rest[0], [=](size_t t) { return second[t] >> 1 & Low(7 - kept); });
    return;
  }
  const uint8_t* third = bytes[2];
  Fill(tokens, rest[0], [=](size_t t) { return second[t] & Low(8 - kept); });
  Fill(tokens, rest[1], [=](size_t t) { return third[t]; });
  Fill(tokens, rest[2], [=](size_t t) { return last[t] >> 1; });
}

void Join(const Form& form, const uint8_t* const* coarse, const uint8_t* const* rest, size_t tokens,
          uint8_t* const* bytes) {
  const uint32_t kept = form.kept;
  uint8_t* last = bytes[form.bytes.width - 1];
  if (coarse != nullptr) {
    const uint8_t* first = coarse[0];
    for (size_t p = 1; p < form.bytes.width; ++p) std::memset(bytes[p], 0, tokens);
    if (form.element == KVT_ELEMENT_F16) {
      const uint32_t less = 2 - kept;
      Fill(tokens, bytes[0], [=](size_t t) { return (first[t] & 0x80) | (first[t] << less & 0x7f); });
      return;
    }
    const uint8_t* second = coarse[1];
    std::memcpy(bytes[0], first, tokens);
    Fill(tokens, bytes[1], [=](size_t t) { return second[t] >> 1 << (8 - kept); });
    const uint8_t* before = last;
    Fill(tokens, last, [=](size_t t) { return before[t] | (second[t] & 1); });
    return;
  }
  const uint8_t* first = rest[0];
  if (form.element == KVT_ELEMENT_F16) {
    const uint32_t less = 2 - kept;
    Fill(tokens, bytes[0], [=](size_t t) { return first[t] & Low(less); });
    std::memcpy(bytes[1], rest[form.rest - 1], tokens);
    return;
  }
  std::memset(bytes[0], 0, tokens);
  if (form.element == KVT_ELEMENT_BF16) {
    Fill(tokens, bytes[1], [=](size_t t) { return (first[t] & Low(7 - kept)) << 1; });
    return;
  }
  const uint8_t* third = rest[2];
  Fill(tokens, bytes[1], [=](size_t t) { return first[t] & Low(8 - kept); });
  std::memcpy(bytes[2], rest[1], tokens);
  Fill(tokens, bytes[3], [=](size_t t) { return third[t] << 1; });
}

void Centre(const Form& form, size_t count, uint8_t* elements) {
  const uint32_t middle = (form.dropped + 1) / 2, exponent = form.exponent;
  // All bits but the sign.
  const uint32_t magnitude = exponent | ((exponent & (0 - exponent)) - 1);
  WithWord(form, [&](auto word) {
    ForWords<decltype(word)>(count, elements, [&](uint32_t bits, size_t) {
      const bool stays = (bits & magnitude) == 0 || (bits & exponent) == exponent;
      return stays ? bits : bits | middle;
    });
  });
}

void Complete(const Form& form, size_t count, const uint8_t* rest, uint8_t* elements) {
  const uint32_t dropped = form.dropped;
  WithWord(form, [&](auto word) {
    using Word = decltype(word);
    ForWords<Word>(count, elements, [&](uint32_t bits, size_t i) {
      return (bits & ~dropped) | (LoadLe<Word>(rest + i * sizeof(Word)) & dropped);
    });
  });
}

uint64_t CountNonfinite(const Form& form, size_t count, const uint8_t* elements) {
  uint64_t nonfinite = 0;
  WithWord(form, [&](auto word) {
    using Word = decltype(word);
    for (size_t i = 0; i < count; ++i)
      nonfinite += (LoadLe<Word>(elements + i * sizeof(Word)) & form.exponent) == form.exponent;
  });
  return nonfinite;
}

}  // namespace kvt::nested
