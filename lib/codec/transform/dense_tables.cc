#include "codec/transform/dense_tables.h"

namespace kvt {
namespace {

constexpr float kEscapeBits = 16;

}  // namespace

DenseTables::DenseTables(const DenseFacts& facts)
    : tables_(facts.tables),
      prices_(size_t{kDenseTables} * kernels::kTrellisPrices),
      centres_(size_t{kDenseTables} * kernels::kTrellisCentres),
      codes_(size_t{kDenseTables} * kernels::kRansSymbols),
      entries_(size_t{kDenseTables} << kDenseBits) {
  for (uint32_t i = 0; i < kDenseTables; ++i) {
    tables_[i].FillCodes(codes_.data() + size_t{i} * kernels::kRansSymbols);
    tables_[i].FillEntries(entries_.data() + (size_t{i} << kDenseBits));
    for (uint32_t m = 0; m < kernels::kTrellisPrices; ++m) {
      const auto magnitude = static_cast<int32_t>(m);
      const float bits = (Bits(i, magnitude) + Bits(i, -magnitude)) / 2;
      prices_[size_t{i} * kernels::kTrellisPrices + m] = kBitPrice * bits;
    }
    for (uint32_t m = 1; m < kernels::kTrellisCentres; ++m) {
      centres_[size_t{i} * kernels::kTrellisCentres + m] =
          facts.centres[size_t{i} * (kernels::kTrellisCentres - 1) + m - 1];
    }
  }
}

float DenseTables::Bits(uint32_t table, int32_t code) const {
  const SymbolTable& own = tables_[table];
  constexpr auto kUnit = static_cast<float>(SymbolTable::kCostUnit);
  if (Holds(table, code)) return static_cast<float>(own.Cost(FoldCode(code))) / kUnit;
  // As the escape's own symbol, whose cost holds eight bits for what follows.
  return static_cast<float>(own.Cost(own.escape())) / kUnit - 8 + kEscapeBits;
}

}  // namespace kvt
