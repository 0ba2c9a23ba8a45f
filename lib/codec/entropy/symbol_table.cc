#include "codec/entropy/symbol_table.h"

#include <algorithm>
#include <numeric>

namespace kvt {
namespace {

using kernels::kRansBitsMax;
using kernels::kRansBitsMin;
using kernels::kRansSymbols;

constexpr uint32_t kLevelBits = 6, kRunOrder = 2, kStepOrder = 1;
constexpr int32_t kLevels = 63;
// The weight of a symbol that is all there is; level 1 is a weight of 1.
constexpr uint32_t kWeightBits = 15;
// The step that stands for a level of 0.
constexpr uint32_t kToZero = 4;

// Steps as numbers, without the one that kToZero takes.
uint32_t Fold(int32_t step) {
  const uint32_t folded = step < 0 ? 2 * static_cast<uint32_t>(-step) - 1 : 2 * static_cast<uint32_t>(step);
  return folded < kToZero ? folded : folded + 1;
}
int32_t Unfold(uint32_t folded) {
  if (folded > kToZero) --folded;
  return folded % 2 == 1 ? -static_cast<int32_t>(folded / 2) - 1 : static_cast<int32_t>(folded / 2);
}

// Level n weighs 2^((n - 1) / 4), in integers; level 0 nothing.
struct WeightTable {
  std::array<uint32_t, kLevels + 1> weights{};

  constexpr WeightTable() {
    constexpr uint32_t kQuarters[] = {1u << 16, 77936, 92682, 110218};
    for (uint32_t n = 1; n <= kLevels; ++n)
      weights[n] = static_cast<uint32_t>((uint64_t{kQuarters[(n - 1) % 4]} << ((n - 1) / 4)) >> 16);
  }
};

constexpr WeightTable kWeights;

// The level whose weight is nearest.
uint8_t LevelOf(uint64_t weight) {
  int32_t level = 1;
  while (level < kLevels && 2 * weight > uint64_t{kWeights.weights[level]} + kWeights.weights[level + 1])
    ++level;
  return static_cast<uint8_t>(level);
}

// SymbolTable::kCostUnit x (12 - log2(value)) for 1 to 4,096, in integers so that every machine has the same.
struct CostTable {
  std::array<uint16_t, (1u << kRansBitsMax) + 1> costs{};

  constexpr CostTable() {
    for (uint32_t value = 1; value <= 1u << kRansBitsMax; ++value) {
      const auto whole = static_cast<uint32_t>(std::bit_width(value)) - 1;
      uint64_t mantissa = uint64_t{value} << (31 - whole);
      uint32_t log = whole;
      for (int i = 0; i < 6; ++i) {
        mantissa = mantissa * mantissa >> 31;
        log = log << 1 | (mantissa >> 32 & 1);
        if ((mantissa >> 32) != 0) mantissa >>= 1;
      }
      costs[value] = static_cast<uint16_t>(kRansBitsMax * SymbolTable::kCostUnit - log);
    }
  }
};
static_assert(SymbolTable::kCostUnit == 1u << 6);

constexpr CostTable kCosts;

}  // namespace

void SymbolTable::Settle() {
  struct Used {
    uint32_t symbol;
    uint64_t weight;
  };
  std::array<Used, kRansSymbols> used;
  size_t count = 0;
  for (uint32_t first = 0; first < kRansSymbols; first += 8) {
    if (LoadLe<uint64_t>(levels_.data() + first) == 0) continue;
    for (uint32_t s = first; s < first + 8; ++s) {
      used[count] = {s, kWeights.weights[levels_[s]]};
      count += levels_[s] != 0 ? 1 : 0;
    }
  }
  // Two symbols at least, so that no frequency is 2^bits.
  if (count == 1) {
    used[0].weight = kWeights.weights[kLevels];
    used[1] = {used[0].symbol ^ 1, kWeights.weights[1]};
    if (used[1].symbol < used[0].symbol) std::swap(used[0], used[1]);
    count = 2;
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += used[i].weight;
  // Symbols whose share is below 1 get 1; the others share what is left. Rounding sums instead of shares
  // spreads what rounding makes.
  uint64_t left = uint64_t{1} << bits_, weight = sum;
  for (size_t i = 0; i < count; ++i) {
    if (used[i].weight << bits_ >= sum) continue;
    --left;
    weight -= used[i].weight;
  }
  frequencies_ = {};
  uint64_t before = 0, given = 0, excess = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t frequency = 1;
    if (used[i].weight << bits_ >= sum) {
      before += used[i].weight;
      // Both are below 2^36 and the quotient is at most 2^12, so its floor is that of the exact one.
      const auto numerator = static_cast<int64_t>(before * left + weight / 2);
      const auto until = static_cast<uint64_t>(static_cast<int64_t>(
          static_cast<double>(numerator) / static_cast<double>(static_cast<int64_t>(weight))));
      frequency = std::max<uint64_t>(until - given, 1);
      excess += until == given ? 1 : 0;
      given = until;
    }
    frequencies_[used[i].symbol] = static_cast<uint16_t>(frequency);
  }
  for (; excess != 0; --excess) --*std::max_element(frequencies_.begin(), frequencies_.end());
}

SymbolTable SymbolTable::Of(const SymbolCounts& counts, uint32_t bits, bool escapes) {
  SymbolTable table;
  table.bits_ = bits;
  SymbolCounts wanted = counts;
  if (escapes) {
    const auto least = std::min_element(wanted.begin(), wanted.end());
    table.escape_ = static_cast<uint32_t>(least - wanted.begin());
    *least = std::max<uint64_t>(*least, 1);
  }
  const uint64_t total = std::max<uint64_t>(std::accumulate(wanted.begin(), wanted.end(), uint64_t{0}), 1);
  for (uint32_t s = 0; s < kRansSymbols; ++s) {
    if (wanted[s] == 0) continue;
    table.levels_[s] = LevelOf(std::max<uint64_t>((wanted[s] << kWeightBits) / total, 1));
  }
  table.Settle();
  return table;
}

// After the first level: differences as 0, -1, 1, -2, ... in order 1 (never to 0), and a 0 as what would be
// no change with one more; after a 0 how many more there are, and the next level as it is.
void SymbolTable::Write(BitWriter* out) const {
  out->Add(bits_ - kRansBitsMin, 3);
  out->Add(escape_ == kNoEscape ? 0 : 1, 1);
  if (escape_ != kNoEscape) out->Add(escape_, 8);
  uint32_t before = 0;
  for (uint32_t s = 0; s < kRansSymbols; ++s) {
    const uint32_t level = levels_[s];
    if (before == 0) {
      uint32_t zeros = 0;
      while (s + zeros < kRansSymbols && levels_[s + zeros] == 0) ++zeros;
      out->AddGolomb(zeros, kRunOrder);
      s += zeros;
      if (s == kRansSymbols) break;
      out->Add(levels_[s], kLevelBits);
      before = levels_[s];
      continue;
    }
    out->AddGolomb(level == 0 ? kToZero : Fold(static_cast<int32_t>(level) - static_cast<int32_t>(before)),
                   kStepOrder);
    before = level;
  }
}

StatusOr<SymbolTable> SymbolTable::Read(BitReader* in) {
  SymbolTable table;
  table.bits_ = kRansBitsMin + in->Take(3);
  if (table.bits_ > kRansBitsMax) {
    return Error(KVT_ERR_CORRUPT,
                 absl::StrCat("symbol table: ", table.bits_, " bits, the most are ", kRansBitsMax));
  }
  if (in->Take(1) != 0) table.escape_ = in->Take(8);
  int32_t before = 0;
  for (uint32_t s = 0; s < kRansSymbols; ++s) {
    if (before == 0) {
      s += in->TakeGolomb(kRunOrder);
      if (s == kRansSymbols) break;
      before = static_cast<int32_t>(in->Take(kLevelBits));
    } else {
      const uint32_t step = in->TakeGolomb(kStepOrder);
      before = step == kToZero ? 0 : before + Unfold(step);
    }
    if (in->over() || s > kRansSymbols || before < 0 || before > kLevels) {
      return Error(KVT_ERR_CORRUPT, absl::StrCat("symbol table: level ", before, " of symbol ", s,
                                                 in->over() ? ", after its end" : ""));
    }
    table.levels_[s] = static_cast<uint8_t>(before);
  }
  if (in->over() ||
      std::all_of(table.levels_.begin(), table.levels_.end(), [](uint8_t level) { return level == 0; }))
    return Error(KVT_ERR_CORRUPT, in->over() ? "symbol table: it ends early" : "symbol table: no symbol");
  table.Settle();
  if (table.escape_ != kNoEscape && table.frequencies_[table.escape_] == 0)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("symbol table: escape ", table.escape_, " has no frequency"));
  return table;
}

uint32_t SymbolTable::Cost(uint32_t symbol) const {
  const uint32_t above = (kRansBitsMax - bits_) * kCostUnit;
  if (Holds(symbol)) return kCosts.costs[frequencies_[symbol]] - above;
  if (escape_ != kNoEscape) return kCosts.costs[frequencies_[escape_]] - above + 8 * kCostUnit;
  return (bits_ + 2) * kCostUnit;
}

void SymbolTable::FillCodes(kernels::RansCode codes[kRansSymbols]) const {
  uint32_t start = 0;
  for (uint32_t s = 0; s < kRansSymbols; ++s) {
    codes[s] = kernels::RansCodeOf(start, frequencies_[s], bits_);
    start += frequencies_[s];
  }
  if (escape_ == kNoEscape) return;
  for (uint32_t s = 0; s < kRansSymbols; ++s)
    if (frequencies_[s] == 0) codes[s] = codes[escape_];
}

}  // namespace kvt
