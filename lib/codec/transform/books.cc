#include "codec/transform/books.h"

#include <algorithm>
#include <cmath>

namespace kvt {
namespace {

constexpr int kRounds = 60;
constexpr double kLeastDistortion = 1e-9;

// Sums of the sorted samples before each index.
std::vector<double> SumsBefore(const std::vector<float>& samples) {
  std::vector<double> sums(samples.size() + 1, 0.0);
  for (size_t i = 0; i < samples.size(); ++i) sums[i + 1] = sums[i] + double{samples[i]};
  return sums;
}

// Where levels begin: at the quantiles of the cube root of the density, the optimum for many levels, which
// here comes from the spacing of order statistics.
std::vector<double> FirstLevels(const std::vector<float>& samples, size_t count) {
  const size_t cells = std::min<size_t>(samples.size(), 4 * count);
  std::vector<double> weights(cells + 1, 0.0), edges(cells + 1);
  for (size_t i = 0; i <= cells; ++i)
    edges[i] = double{samples[std::min(samples.size() - 1, i * samples.size() / cells)]};
  // A cell of width w holds 1 / cells of the samples: its density's cube root times w is w^(2/3).
  for (size_t i = 0; i < cells; ++i) {
    const double cell = edges[i + 1] - edges[i];
    weights[i + 1] = weights[i] + std::cbrt(cell * cell);
  }
  std::vector<double> levels(count);
  size_t cell = 0;
  for (size_t k = 0; k < count; ++k) {
    const double wanted = weights[cells] * (static_cast<double>(k) + 0.5) / static_cast<double>(count);
    while (cell + 1 < cells && weights[cell + 1] < wanted) ++cell;
    const double step = weights[cell + 1] - weights[cell];
    const double part = step > 0 ? std::clamp((wanted - weights[cell]) / step, 0.0, 1.0) : 0.5;
    levels[k] = edges[cell] + part * (edges[cell + 1] - edges[cell]);
  }
  return levels;
}

}  // namespace

std::vector<float> BoundsOf(const std::vector<float>& levels) {
  std::vector<float> bounds;
  for (size_t i = 1; i < levels.size(); ++i) bounds.push_back(0.5f * levels[i - 1] + 0.5f * levels[i]);
  return bounds;
}

ProfileBook FitBook(uint32_t bits, std::vector<float>* samples) {
  std::sort(samples->begin(), samples->end());
  const size_t count = size_t{1} << bits;
  const std::vector<double> sums = SumsBefore(*samples);
  std::vector<double> levels = FirstLevels(*samples, count);
  for (int round = 0; round < kRounds; ++round) {
    size_t begin = 0;
    for (size_t k = 0; k < count; ++k) {
      size_t end = samples->size();
      if (k + 1 < count) {
        const auto bound = static_cast<float>(0.5 * (levels[k] + levels[k + 1]));
        end = static_cast<size_t>(
            std::upper_bound(samples->begin() + static_cast<ptrdiff_t>(begin), samples->end(), bound) -
            samples->begin());
      }
      if (end > begin) levels[k] = (sums[end] - sums[begin]) / static_cast<double>(end - begin);
      begin = end;
    }
  }
  ProfileBook book;
  for (size_t k = 0; k < count; ++k) {
    float level = static_cast<float>(std::clamp(levels[k], -60000.0, 60000.0));
    // Strictly ascending, even where samples repeat.
    if (k != 0 && !(level > book.levels.back())) level = std::nextafter(book.levels.back(), INFINITY);
    book.levels.push_back(level);
  }
  const std::vector<float> bounds = BoundsOf(book.levels);
  double error = 0, energy = 0;
  size_t k = 0;
  for (const float sample : *samples) {
    while (k + 1 < count && sample > bounds[k]) ++k;
    const double miss = double{sample} - double{book.levels[k]};
    error += miss * miss;
    energy += double{sample} * double{sample};
  }
  const double part = energy > 0 ? error / energy : 0;
  book.distortion = static_cast<float>(std::clamp(part, kLeastDistortion, 1.0));
  return book;
}

std::vector<float> NormalSamples() {
  // Quantiles by Newton's method on the distribution function.
  constexpr size_t kCount = 65536;
  constexpr double kRootTwoPi = 2.5066282746310002;
  std::vector<float> samples;
  double x = -4.5;
  for (size_t i = 0; i < kCount; ++i) {
    const double wanted = (static_cast<double>(i) + 0.5) / kCount;
    for (int step = 0; step < 6; ++step) {
      const double miss = 0.5 * std::erfc(-x / std::sqrt(2.0)) - wanted;
      x -= std::clamp(miss * kRootTwoPi * std::exp(0.5 * x * x), -0.5, 0.5);
    }
    samples.push_back(static_cast<float>(x));
  }
  return samples;
}

}  // namespace kvt
