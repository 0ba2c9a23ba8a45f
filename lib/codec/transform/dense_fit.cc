#include "codec/transform/dense_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codec/transform/dense.h"
#include "codec/transform/dense_walk.h"
#include "cpu/transform_codes.h"

namespace kvt {
namespace {

using kernels::kTrellisCentres;

constexpr int kPasses = 3;
// Steps are an octave apart and reach beyond the ratios that can be asked for.
constexpr int32_t kGrid = kOctave;
constexpr double kLeastRatio = kDenseRatioMin / 2.0, kMostRatio = 2.0 * kDenseRatioMax;
// The ratio whose components' leading half measures gains.
constexpr double kMiddleRatio = 20;
// Of a component's magnitudes, the part that its spread is above of.
constexpr double kSpreadPart = 0.96;
// Symbols that stand for what a class is expected to have, beside those that were counted.
constexpr double kPrior = 64;
constexpr double kCountUnit = 1 << 20;
// A symbol of a smaller part is left to the escape.
constexpr double kLeastPart = 0x1p-13;
constexpr double kLeastForCentre = 64;

using Token = DenseWalk::Token;

// Symbols of one table: how often, and how far values were from their levels.
struct TableCounts {
  std::array<double, kernels::kRansSymbols> symbols{};
  std::array<double, kTrellisCentres> shift{}, levels{};
};
using Counts = std::vector<TableCounts>;

// A Laplace distribution of the class's deviation at the levels of the quantiser; adds up to 1.
void AddPrior(uint32_t table, double weight, std::array<double, kernels::kRansSymbols>* symbols) {
  const uint32_t own_class = table / 2;
  const double deviation = std::exp2((static_cast<double>(own_class) - 16) / 4);
  std::array<double, kernels::kRansSymbols> parts{};
  double total = 0;
  for (int32_t code = 1 - kDenseSymbolMost; code < kDenseSymbolMost; ++code) {
    const double level = double{kernels::TrellisLevel(static_cast<uint32_t>(std::abs(code)), table & 1)};
    parts[FoldCode(code)] = std::exp(-std::sqrt(2.0) * level / deviation);
    total += parts[FoldCode(code)];
  }
  for (size_t s = 0; s < parts.size(); ++s) (*symbols)[s] += weight * parts[s] / total;
}

std::shared_ptr<const DenseFacts> TablesOf(const Counts& counts) {
  auto facts = std::make_shared<DenseFacts>();
  for (uint32_t i = 0; i < kDenseTables; ++i) {
    std::array<double, kernels::kRansSymbols> symbols = counts[i].symbols;
    // A value and its negative are as likely.
    for (uint32_t s = 1; s + 1 < symbols.size(); s += 2)
      symbols[s] = symbols[s + 1] = (symbols[s] + symbols[s + 1]) / 2;
    AddPrior(i, kPrior, &symbols);
    const double total = std::accumulate(symbols.begin(), symbols.end(), 0.0);
    SymbolCounts wanted{};
    for (size_t s = 0; s < symbols.size(); ++s) {
      if (symbols[s] >= kLeastPart * total)
        wanted[s] = static_cast<uint64_t>(std::lrint(kCountUnit * symbols[s] / total));
    }
    facts->tables.push_back(SymbolTable::Of(wanted, kDenseBits, /*escapes=*/true));
    for (uint32_t m = 1; m < kTrellisCentres; ++m) {
      const double count = counts[i].levels[m];
      const double shift = count < kLeastForCentre ? 0.0 : counts[i].shift[m] / count;
      facts->centres.push_back(static_cast<float>(std::clamp(shift, -1.0, 1.0)));
    }
  }
  return facts;
}

class Fitter {
 public:
  Fitter(const std::vector<DenseSample>& samples, std::span<const int8_t> importance, ProfileFacts* facts)
      : samples_(samples), facts_(*facts), rows_(importance.size()) {
    for (const ProfileGroup& group : facts_.groups) width_ += group.width();
    for (size_t g = 0; g < samples_.size(); ++g) {
      tokens_.emplace_back(rows_);
      for (size_t r = 0; r < rows_; ++r) tokens_[g][r].importance = importance[r];
    }
  }

  void Run() {
    SetLeading();
    MeasureGains();
    SetSpread();
    const int32_t middle = EstimateStep(kMiddleRatio);
    Counts counts(kDenseTables);
    std::shared_ptr<const DenseFacts> fitted = TablesOf(counts);
    const int32_t least = EstimateStep(kLeastRatio), most = EstimateStep(kMostRatio);
    for (int pass = 0; pass < kPasses; ++pass) {
      const DenseTables tables(*fitted);
      counts.assign(kDenseTables, {});
      for (int32_t step = middle - kGrid; step <= middle + kGrid; step += kGrid) Code(tables, step, &counts);
      fitted = TablesOf(counts);
    }
    auto finished = std::make_shared<DenseFacts>(*fitted);
    const DenseTables tables(*finished);
    const double side = SideBits();
    for (int32_t step = least; step <= most; step += kGrid) {
      const double bits = Code(tables, step, nullptr) / static_cast<double>(rows_) + side;
      const auto ratio = static_cast<float>(RawBits() / bits);
      if (!finished->ratios.empty() && !(ratio > finished->ratios.back())) break;
      finished->steps.push_back(static_cast<int16_t>(step));
      finished->ratios.push_back(ratio);
    }
    if (finished->steps.size() >= 2) facts_.dense = std::move(finished);
  }

 private:
  double RawBits() const { return 8.0 * static_cast<double>(width_ * ElementBytes(facts_.element)); }

  // Of normal components: what reaches a level costs its logarithm and somewhat more.
  double EstimateRatio(int32_t step) const {
    double bits = 1;
    for (const ProfileGroup& group : facts_.groups) {
      for (const float deviation : group.deviation)
        bits += std::max(0.0, std::log2(double{deviation} / double{StepOf(step)}) + 2);
    }
    return RawBits() / bits;
  }
  int32_t EstimateStep(double ratio) const {
    int32_t low = -kStepMost, high = kStepMost;
    while (high - low > 1) {
      const int32_t middle = (low + high) / 2;
      (EstimateRatio(middle) < ratio ? low : high) = middle;
    }
    return high;
  }

  void SetLeading() {
    const float least = StepOf(EstimateStep(kMiddleRatio)) / 4;
    for (ProfileGroup& group : facts_.groups) {
      const auto above = std::lower_bound(group.deviation.begin(), group.deviation.end(), least,
                                          [](float deviation, float bound) { return deviation >= bound; });
      group.leading = static_cast<uint32_t>((above - group.deviation.begin() + 1) / 2);
    }
  }

  void MeasureGains() {
    for (size_t g = 0; g < samples_.size(); ++g) {
      const ProfileGroup& group = facts_.groups[g];
      std::vector<float> squares(rows_, 0.0f);
      for (size_t j = 0; j < group.leading; ++j)
        kernels::AddSquares(samples_[g].values + j * rows_, rows_, 1 / group.deviation[j], squares.data());
      for (size_t r = 0; r < rows_ && group.leading != 0; ++r)
        tokens_[g][r].gain = GainOf(squares[r] / static_cast<float>(group.leading));
    }
  }

  void SetSpread() {
    std::vector<float> magnitudes(rows_);
    const auto at = static_cast<size_t>(kSpreadPart * static_cast<double>(rows_ - 1));
    for (size_t g = 0; g < samples_.size(); ++g) {
      ProfileGroup& group = facts_.groups[g];
      group.spread.clear();
      for (size_t j = 0; j < group.components(); ++j) {
        for (size_t r = 0; r < rows_; ++r)
          magnitudes[r] = std::fabs(samples_[g].values[j * rows_ + r]) / StepOf(TokenStep(0, tokens_[g][r]));
        std::nth_element(magnitudes.begin(), magnitudes.begin() + static_cast<ptrdiff_t>(at),
                         magnitudes.end());
        group.spread.push_back(magnitudes[at]);
      }
    }
  }

  // Bits of a token's gains and importance.
  double SideBits() const {
    double bits = 0;
    for (const std::vector<Token>& tokens : tokens_) {
      for (const auto number : {&Token::gain, &Token::importance}) {
        std::vector<double> counts(2 * kGainMost + 1, 0.0);
        for (const Token& token : tokens) {
          const int32_t place = token.*number + kGainMost;
          ++counts[static_cast<size_t>(place)];
        }
        for (const double count : counts) {
          const double part = count / static_cast<double>(rows_);
          if (part > 0) bits -= part * std::log2(part);
        }
      }
    }
    return bits;
  }

  // Codes the sample; returns the bits, and counts symbols.
  double Code(const DenseTables& tables, int32_t step, Counts* counts) {
    double bits = 0;
    for (size_t g = 0; g < samples_.size(); ++g) {
      const ProfileGroup& group = facts_.groups[g];
      const size_t kept = DenseKept(group, step);
      std::vector<int32_t> classes(kept);
      for (size_t j = 0; j < kept; ++j) classes[j] = ClassOf(SixteenthsOf(group.deviation[j]), step);
      values_.resize(kept * DenseWalk::kTokens);
      for (size_t first = 0; first < rows_; first += DenseWalk::kTokens) {
        const size_t count = std::min(DenseWalk::kTokens, rows_ - first);
        for (size_t j = 0; j < kept; ++j) {
          std::copy_n(samples_[g].values + j * rows_ + first, count, values_.data() + j * DenseWalk::kTokens);
        }
        walk_.Run(tables, Quantiser::kTrellis, step, classes, values_.data(),
                  std::span(tokens_[g]).subspan(first, count));
        bits += Count(tables, kept, count, counts);
      }
    }
    return bits;
  }

  double Count(const DenseTables& tables, size_t kept, size_t count, Counts* counts) {
    double bits = 0;
    for (size_t j = 0; j < kept; ++j) {
      for (size_t t = 0; t < count; ++t) {
        const uint32_t table = walk_.table(j, t);
        const int32_t code = walk_.code(j, t);
        bits += double{tables.Bits(table, code)};
        if (counts == nullptr || std::abs(code) >= kDenseSymbolMost) continue;
        TableCounts& own = (*counts)[table];
        const auto magnitude = static_cast<uint32_t>(std::abs(code));
        const uint32_t m = std::min(magnitude, kTrellisCentres - 1);
        ++own.symbols[FoldCode(code)];
        ++own.levels[m];
        own.shift[m] += double{walk_.distance(j, t, values_.data())} -
                        double{kernels::TrellisLevel(magnitude, table & 1)};
      }
    }
    return bits;
  }

  const std::vector<DenseSample>& samples_;
  ProfileFacts& facts_;
  const size_t rows_;
  size_t width_ = 0;
  std::vector<std::vector<Token>> tokens_;  // by group
  DenseWalk walk_;
  std::vector<float> values_;
};

}  // namespace

void FitDense(const std::vector<DenseSample>& samples, std::span<const int8_t> importance,
              ProfileFacts* facts) {
  Fitter(samples, importance, facts).Run();
}

}  // namespace kvt
