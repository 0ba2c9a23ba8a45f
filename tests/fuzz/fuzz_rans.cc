// Decoding of symbols from any bytes: the first two say how many symbols are wanted and whether a shared
// table is there. What decodes is coded again and has to come back.
#include <vector>

#include "codec/entropy/entropy.h"

namespace {

kvt::SymbolTable Shared() {
  kvt::SymbolCounts counts{};
  for (uint32_t s = 0; s < 40; ++s) counts[s] = 1u << s % 10;
  return kvt::SymbolTable::Of(counts, 12, /*escapes=*/true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const kvt::SymbolTable shared = Shared();
  const kvt::SymbolTable* table = data[0] % 2 == 0 ? nullptr : &shared;
  std::vector<uint8_t> symbols(data[0] / 2 * 256 + data[1]);
  const kvt::Bytes coded(data + 2, size - 2);
  if (!kvt::DecodeSymbols(coded, table, kvt::MutableBytes(symbols.data(), symbols.size())).ok()) return 0;
  std::vector<uint8_t> again(kvt::EntropyBound(symbols.size())), back(symbols.size());
  again.resize(kvt::EncodeSymbols(kvt::Bytes(symbols), table, kvt::MutableBytes(again.data(), again.size())));
  if (!kvt::DecodeSymbols(kvt::Bytes(again), table, kvt::MutableBytes(back.data(), back.size())).ok() ||
      back != symbols) {
    __builtin_trap();
  }
  return 0;
}
