#include "select/cluster.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "cpu/dots.h"

namespace kvt {
namespace {

constexpr int kRounds = 10;
// Farther than any two rows of finite floats.
constexpr double kFar = 1e100;

double SquaredDistance(const float* a, const float* b, size_t width) {
  double sum = 0;
  for (size_t c = 0; c < width; ++c) {
    const double difference = double{a[c]} - double{b[c]};
    sum += difference * difference;
  }
  return sum < kFar ? sum : kFar;
}

// The first centre at random, each next one with a chance that grows with the squared distance from those
// before (k-means++, with every draw by the same integers whatever the standard library).
std::vector<size_t> FirstCentres(const Rows& rows, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<size_t> centres = {static_cast<size_t>(draw() * static_cast<double>(rows.count()))};
  std::vector<double> distances(rows.count(), kFar);
  while (centres.size() < count) {
    const float* last = rows.row(centres.back());
    for (size_t i = 0; i < rows.count(); ++i)
      distances[i] = std::min(distances[i], SquaredDistance(rows.row(i), last, rows.width));
    for (const size_t centre : centres) distances[centre] = -1;
    double total = 0;
    for (const double distance : distances) total += std::max(distance, 0.0);
    double left = draw() * total;
    size_t chosen = rows.count();
    for (size_t i = 0; i < rows.count(); ++i) {
      if (distances[i] < 0) continue;
      // Where all that are left repeat a centre, the first of them.
      if (chosen == rows.count() || (left > 0 && distances[i] > 0)) chosen = i;
      if (distances[i] > 0 && (left -= distances[i]) <= 0) break;
    }
    centres.push_back(chosen);
  }
  return centres;
}

}  // namespace

std::vector<uint32_t> Representatives(const Rows& rows, size_t count, uint64_t seed) {
  const size_t total = rows.count(), width = rows.width;
  std::vector<uint32_t> chosen(count);
  if (count == total) {
    std::iota(chosen.begin(), chosen.end(), 0);
    return chosen;
  }
  Rows centres;
  centres.width = width;
  for (const size_t first : FirstCentres(rows, count, seed))
    centres.values.insert(centres.values.end(), rows.row(first), rows.row(first) + width);
  std::vector<float> dots(total * count);
  std::vector<size_t> owner(total, count), members(count);
  std::vector<double> distance(total);
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<float> packed = Packed(centres);
    kernels::DotPanels(rows.values.data(), total, packed.data(), count, width, dots.data(), count);
    std::vector<double> norms(count);
    for (size_t k = 0; k < count; ++k)
      norms[k] = std::inner_product(centres.row(k), centres.row(k) + width, centres.row(k), 0.0);
    bool changed = false;
    std::fill(members.begin(), members.end(), 0);
    for (size_t i = 0; i < total; ++i) {
      size_t nearest = 0;
      distance[i] = kFar;
      for (size_t k = 0; k < count; ++k) {
        // The row's own square is the same for all centres.
        const double here = norms[k] - 2 * double{dots[i * count + k]};
        if (here < distance[i]) {
          distance[i] = here;
          nearest = k;
        }
      }
      distance[i] += std::inner_product(rows.row(i), rows.row(i) + width, rows.row(i), 0.0);
      changed = changed || owner[i] != nearest;
      owner[i] = nearest;
      ++members[nearest];
    }
    // A centre that nobody is nearest to takes the row farthest from its own.
    for (size_t k = 0; k < count; ++k) {
      if (members[k] != 0) continue;
      size_t farthest = total;
      for (size_t i = 0; i < total; ++i) {
        if (members[owner[i]] > 1 && (farthest == total || distance[i] > distance[farthest])) farthest = i;
      }
      --members[owner[farthest]];
      owner[farthest] = k;
      distance[farthest] = 0;
      members[k] = 1;
    }
    std::vector<double> sums(count * width);
    for (size_t i = 0; i < total; ++i) {
      for (size_t c = 0; c < width; ++c) sums[owner[i] * width + c] += double{rows.row(i)[c]};
    }
    for (size_t k = 0; k < count; ++k) {
      for (size_t c = 0; c < width; ++c)
        centres.row(k)[c] = static_cast<float>(sums[k * width + c] / static_cast<double>(members[k]));
    }
    if (!changed) break;
  }
  std::vector<double> best(count, 2 * kFar);
  for (size_t i = 0; i < total; ++i) {
    const double here = SquaredDistance(rows.row(i), centres.row(owner[i]), width);
    if (here < best[owner[i]]) {
      best[owner[i]] = here;
      chosen[owner[i]] = static_cast<uint32_t>(i);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace kvt
