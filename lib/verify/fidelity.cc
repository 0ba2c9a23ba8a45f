#include "verify/fidelity.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace kvt {
namespace {

Status CheckArguments(const float* alone, const float* batched, size_t rows, size_t vocabulary,
                      const uint32_t* widths, const uint32_t* places) {
  const std::pair<const void*, const char*> pointers[] = {
      {alone, "alone"}, {batched, "batched"}, {widths, "widths"}, {places, "places"}};
  for (const auto& [pointer, name] : pointers) {
    if (pointer == nullptr) return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL"));
  }
  if (rows < 2)
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("rows is ", rows, ", a probe has at least 2"));
  if (vocabulary == 0 || vocabulary > std::numeric_limits<size_t>::max() / sizeof(float) / rows)
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("vocabulary is ", vocabulary));
  for (size_t r = 0; r < rows; ++r) {
    if (widths[r] == 0 || places[r] >= widths[r]) {
      return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("places[", r, "] is ", places[r],
                                                          " in a batch of widths[", r, "] = ", widths[r]));
    }
  }
  return OkStatus();
}

absl::string_view RowBytes(const float* rows, size_t row, size_t vocabulary) {
  return {reinterpret_cast<const char*>(rows + row * vocabulary), vocabulary * sizeof(float)};
}

// Whether the same token at several places of batches of one width always has the same bits. Rows that are
// equal when decoded alone are of the same token. False when the probe holds no two places to compare.
bool EqualAtEveryPlace(const float* alone, const float* batched, size_t rows, size_t vocabulary,
                       const uint32_t* widths, const uint32_t* places) {
  absl::flat_hash_map<std::pair<uint32_t, absl::string_view>, size_t> first;
  bool compared = false;
  for (size_t r = 0; r < rows; ++r) {
    const auto [it, fresh] = first.try_emplace({widths[r], RowBytes(alone, r, vocabulary)}, r);
    if (fresh) continue;
    if (RowBytes(batched, r, vocabulary) != RowBytes(batched, it->second, vocabulary)) return false;
    compared = compared || places[r] != places[it->second];
  }
  return compared;
}

}  // namespace

StatusOr<Fidelity> ClassifyFidelity(const float* alone, const float* batched, size_t rows, size_t vocabulary,
                                    const uint32_t* widths, const uint32_t* places) {
  KVT_RETURN_IF_ERROR(CheckArguments(alone, batched, rows, vocabulary, widths, places));
  bool same_bits = true, same_argmax = true;
  double largest = 0;
  for (size_t r = 0; r < rows; ++r) {
    const float* a = alone + r * vocabulary;
    const float* b = batched + r * vocabulary;
    same_bits = same_bits && std::memcmp(a, b, vocabulary * sizeof(float)) == 0;
    for (size_t i = 0; i < vocabulary; ++i) {
      if (std::isnan(a[i]) || std::isnan(b[i])) {
        return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(std::isnan(a[i]) ? "alone" : "batched", "[", r,
                                                            "][", i, "] is not a number"));
      }
      // Equal infinities do not differ.
      if (a[i] != b[i]) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
    }
    same_argmax =
        same_argmax && std::max_element(a, a + vocabulary) - a == std::max_element(b, b + vocabulary) - b;
  }
  if (same_bits) return Fidelity{KVT_FIDELITY_C, 0};
  Fidelity result;
  result.margin = static_cast<float>(
      std::clamp<double>(2 * largest, std::numeric_limits<float>::min(), std::numeric_limits<float>::max()));
  if (same_argmax && 2 * largest <= std::numeric_limits<float>::max()) {
    result.level = KVT_FIDELITY_B;
  } else if (EqualAtEveryPlace(alone, batched, rows, vocabulary, widths, places)) {
    result.level = KVT_FIDELITY_A;
  }
  return result;
}

}  // namespace kvt
