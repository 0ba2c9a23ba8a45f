#include "select/redundancy.h"

#include <algorithm>
#include <cmath>

#include "cpu/dots.h"

namespace kvt {
namespace {

// Rows of the similarity matrix that are held at a time.
constexpr size_t kRowsTogether = 64;

void MakeUnit(float* row, size_t width) {
  double squares = 0;
  for (size_t c = 0; c < width; ++c) squares += double{row[c]} * double{row[c]};
  const double inverse = squares > 0 ? 1 / std::sqrt(squares) : 0;
  for (size_t c = 0; c < width; ++c) row[c] = static_cast<float>(double{row[c]} * inverse);
}

}  // namespace

std::vector<float> Redundancy(Rows keys, float similarity) {
  const size_t tokens = keys.count();
  for (size_t t = 0; t < tokens; ++t) MakeUnit(keys.row(t), keys.width);
  const std::vector<float> packed = Packed(keys);
  std::vector<double> sums(tokens);
  std::vector<float> cosines(std::min(kRowsTogether, tokens) * tokens);
  for (size_t begin = 0; begin < tokens; begin += kRowsTogether) {
    const size_t rows = std::min(kRowsTogether, tokens - begin);
    kernels::DotPanels(keys.row(begin), rows, packed.data(), tokens, keys.width, cosines.data(), tokens);
    for (size_t r = 0; r < rows; ++r) {
      float* row = cosines.data() + r * tokens;
      row[begin + r] = 0;
      for (size_t t = tokens; t-- > 0;) {
        if (row[t] > similarity) {
          row[t] = 0;
          break;
        }
      }
      for (size_t t = 0; t < tokens; ++t) sums[t] += double{row[t]};
    }
  }
  std::vector<float> result(tokens);
  const double highest = *std::max_element(sums.begin(), sums.end()) / static_cast<double>(tokens);
  double total = 0;
  for (double& sum : sums) total += sum = std::exp(sum / static_cast<double>(tokens) - highest);
  for (size_t t = 0; t < tokens; ++t) result[t] = static_cast<float>(sums[t] / total);
  return result;
}

}  // namespace kvt
