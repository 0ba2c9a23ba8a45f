#include "codec/lossless/classes.h"

#include <algorithm>
#include <numeric>

namespace kvt::lossless {
namespace {

using kernels::kRansSymbols;

constexpr uint32_t kTableBits = kernels::kRansBitsMax;
constexpr int kPasses = 3;
constexpr uint32_t kUnit = SymbolTable::kCostUnit;

// Of each symbol in each class, class after class for a symbol.
class CostTable {
 public:
  explicit CostTable(const std::vector<SymbolTable>& tables)
      : classes_(tables.size()),
        stride_((classes_ + kLanes - 1) / kLanes * kLanes),
        costs_(kRansSymbols * stride_) {
    for (uint32_t s = 0; s < kRansSymbols; ++s)
      for (size_t k = 0; k < classes_; ++k) costs_[s * stride_ + k] = tables[k].Cost(s);
  }
  size_t classes() const { return classes_; }
  uint64_t Of(absl::Span<const Occurrence> item, size_t k) const {
    uint64_t sum = 0;
    for (const Occurrence& o : item) sum += uint64_t{o.count} * costs_[o.symbol * stride_ + k];
    return sum;
  }
  // The cheapest class for an item, and its cost.
  std::pair<size_t, uint64_t> Best(absl::Span<const Occurrence> item) const {
    std::pair<size_t, uint64_t> best(classes_, UINT64_MAX);
    for (size_t first = 0; first < stride_; first += kLanes) {
      uint32_t sums[kLanes] = {};
      for (const Occurrence& o : item) {
        const uint32_t* costs = costs_.data() + o.symbol * stride_ + first;
        for (size_t k = 0; k < kLanes; ++k) sums[k] += o.count * costs[k];
      }
      for (size_t k = 0; k < kLanes && first + k < classes_; ++k)
        if (sums[k] < best.second) best = {first + k, sums[k]};
    }
    return best;
  }

 private:
  static constexpr size_t kLanes = 16;
  size_t classes_, stride_;
  std::vector<uint32_t> costs_;
};

uint64_t RawCost(const Items& items, size_t item) { return items.total(item) * 8 * kUnit; }

uint64_t TableCost(const SymbolTable& table) {
  BitWriter bits;
  table.Write(&bits);
  return bits.bytes().size() * 8 * kUnit;
}

// First classes: the items by their mean, then those of similar means by their spread.
std::vector<uint8_t> Begin(const Items& items, bool sign_first, uint32_t most) {
  struct Key {
    double mean, spread;
    uint32_t item;
  };
  std::vector<Key> keys;
  for (uint32_t i = 0; i < items.size(); ++i) {
    int64_t count = 0, sum = 0, squares = 0;
    for (const Occurrence& o : items[i]) {
      const int64_t value = sign_first && o.symbol >= 128 ? 127 - int64_t{o.symbol} : o.symbol;
      count += o.count;
      sum += o.count * value;
      squares += o.count * value * value;
    }
    if (count == 0) continue;
    const double mean = static_cast<double>(sum) / static_cast<double>(count);
    keys.push_back({mean, static_cast<double>(squares) / static_cast<double>(count) - mean * mean, i});
  }
  const auto by = [&](auto key) {
    return [key](const Key& a, const Key& b) { return a.*key != b.*key ? a.*key < b.*key : a.item < b.item; };
  };
  std::sort(keys.begin(), keys.end(), by(&Key::mean));
  const uint32_t rows = most >= 4 ? (most >= 16 ? 4 : 2) : 1, columns = most / rows;
  std::vector<uint8_t> of(items.size(), 0);
  for (uint32_t column = 0; column < columns; ++column) {
    const auto begin = keys.begin() + static_cast<int64_t>(keys.size() * column / columns);
    const auto end = keys.begin() + static_cast<int64_t>(keys.size() * (column + 1) / columns);
    std::sort(begin, end, by(&Key::spread));
    const auto size = static_cast<size_t>(end - begin);
    for (size_t i = 0; i < size; ++i)
      of[(begin + static_cast<int64_t>(i))->item] = static_cast<uint8_t>(column * rows + i * rows / size);
  }
  return of;
}

// Makes the tables of the classes that `of` names; classes without bytes vanish.
void MakeTables(const Items& items, uint32_t classes, Classes* result) {
  std::vector<SymbolCounts> sums(classes);
  for (size_t i = 0; i < items.size(); ++i) {
    if (result->of[i] == classes) continue;
    for (const Occurrence& o : items[i]) sums[result->of[i]][o.symbol] += o.count;
  }
  std::vector<uint8_t> number(classes + 1);
  result->tables.clear();
  for (uint32_t k = 0; k < classes; ++k) {
    number[k] = static_cast<uint8_t>(result->tables.size());
    if (std::any_of(sums[k].begin(), sums[k].end(), [](uint64_t count) { return count != 0; }))
      result->tables.push_back(SymbolTable::Of(sums[k], kTableBits, /*escapes=*/false));
  }
  number[classes] = static_cast<uint8_t>(result->tables.size());
  // An item without bytes may name a class that vanished; any number does for it.
  for (uint8_t& k : result->of) k = std::min(number[k], number[classes]);
}

// Gives every item the class that codes it best, or none where that does not pay.
void Assign(const Items& items, Classes* result) {
  const CostTable costs(result->tables);
  for (size_t i = 0; i < items.size(); ++i) {
    const auto [k, cost] = costs.Best(items[i]);
    const bool pays = items.total(i) == 0 || cost < RawCost(items, i);
    result->of[i] = static_cast<uint8_t>(pays ? k : costs.classes());
  }
}

// Stores the items of classes that do not pay for their table.
void DropPoor(const Items& items, Classes* result) {
  const CostTable costs(result->tables);
  std::vector<int64_t> gain;
  for (const SymbolTable& table : result->tables) gain.push_back(-static_cast<int64_t>(TableCost(table)));
  for (size_t i = 0; i < items.size(); ++i) {
    const uint8_t k = result->of[i];
    if (k != gain.size()) gain[k] += static_cast<int64_t>(RawCost(items, i) - costs.Of(items[i], k));
  }
  for (uint8_t& k : result->of)
    if (k != gain.size() && gain[k] <= 0) k = static_cast<uint8_t>(gain.size());
  MakeTables(items, static_cast<uint32_t>(gain.size()), result);
}

}  // namespace

SymbolTable ClassNumbers(const std::vector<uint8_t>& of) {
  SymbolCounts counts{};
  for (const uint8_t k : of) ++counts[k];
  const auto bits = static_cast<uint32_t>(std::bit_width(of.size()));
  return SymbolTable::Of(counts, std::clamp(bits, kernels::kRansBitsMin, kTableBits), /*escapes=*/false);
}

Classes Classify(const Items& items, bool sign_first, uint32_t most) {
  Classes result;
  result.of = Begin(items, sign_first, most);
  MakeTables(items, most, &result);
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto classes = static_cast<uint32_t>(result.tables.size());
    Assign(items, &result);
    MakeTables(items, classes, &result);
  }
  DropPoor(items, &result);
  const CostTable costs(result.tables);
  for (const SymbolTable& table : result.tables) result.cost += TableCost(table);
  for (size_t i = 0; i < items.size(); ++i)
    result.cost += result.of[i] == costs.classes() ? RawCost(items, i) : costs.Of(items[i], result.of[i]);
  if (result.tables.empty()) return result;
  const SymbolTable numbers = ClassNumbers(result.of);
  result.cost += TableCost(numbers);
  for (const uint8_t k : result.of) result.cost += numbers.Cost(k);
  return result;
}

}  // namespace kvt::lossless
