#include "codec/entropy/entropy.h"

#include <algorithm>
#include <cstring>

#include "cpu/rans.h"

namespace kvt {
namespace {

using kernels::kRansBitsMax;
using kernels::kRansBitsMin;
using kernels::kRansStatesMax;
using kernels::kRansStatesMin;
using kernels::kRansSymbols;

enum Kind : uint8_t { kStored = 0, kOwnTables = 1, kSharedTable = 2 };

// Fewer symbols than this are never coded with tables of their own.
constexpr uint64_t kLeastSymbols = 64;
// Symbols that share a table of their own.
constexpr size_t kTableSymbols = 8192;

Status Corrupt(absl::string_view text) {
  return Error(KVT_ERR_CORRUPT, absl::StrCat("coded symbols: ", text));
}

uint32_t BitsFor(uint64_t symbols) {
  const auto bits = static_cast<uint32_t>(std::bit_width(symbols));
  return std::clamp(bits, kRansBitsMin, kRansBitsMax);
}

SymbolCounts Count(Bytes symbols) {
  SymbolCounts counts{};
  for (const uint8_t symbol : symbols) ++counts[symbol];
  return counts;
}

uint64_t Store(Bytes symbols, MutableBytes out) {
  out[0] = kStored;
  if (!symbols.empty()) std::memcpy(out.data() + 1, symbols.data(), symbols.size());
  return 1 + symbols.size();
}

}  // namespace

uint32_t StatesFor(uint64_t symbols) { return symbols < 1u << 14 ? 32 : symbols < 1u << 16 ? 64 : 128; }

uint64_t EncodeSymbols(Bytes symbols, const SymbolTable* shared, MutableBytes out) {
  if (symbols.size() > UINT32_MAX || (shared == nullptr && symbols.size() < kLeastSymbols))
    return Store(symbols, out);
  const size_t step = shared != nullptr ? std::max<size_t>(symbols.size(), 1) : kTableSymbols;
  std::vector<SymbolTable> tables;
  BitWriter bits;
  std::vector<uint8_t> literals;
  for (size_t first = 0; first < symbols.size(); first += step) {
    const Bytes part = symbols.subspan(first, step);
    tables.push_back(
        shared != nullptr ? *shared : SymbolTable::Of(Count(part), BitsFor(part.size()), /*escapes=*/false));
    if (shared == nullptr) tables.back().Write(&bits);
    if (tables.back().escape() == SymbolTable::kNoEscape) continue;
    for (const uint8_t symbol : part)
      if (!tables.back().Holds(symbol)) literals.push_back(symbol);
  }
  const uint32_t states = StatesFor(symbols.size());
  std::vector<uint8_t> words(symbols.size() * kernels::kRansWordBytes + states * kernels::kRansStateBytes);
  kernels::RansEncoder encoder(states, words.data() + words.size());
  for (size_t i = tables.size(); i-- > 0;) {
    kernels::RansCode codes[kRansSymbols];
    tables[i].FillCodes(codes);
    const Bytes part = symbols.subspan(i * step, step);
    encoder.Add(codes, part.data(), part.size());
  }
  const uint8_t* stream = encoder.Finish();
  const auto stream_bytes = static_cast<uint64_t>(words.data() + words.size() - stream);
  const uint64_t front = 1 + 2 * sizeof(uint32_t) + bits.bytes().size() + literals.size();
  if (front + stream_bytes >= EntropyBound(symbols.size())) return Store(symbols, out);
  uint8_t* to = out.data();
  *to++ = static_cast<uint8_t>((shared != nullptr ? kSharedTable : kOwnTables) |
                               (std::bit_width(states / kRansStatesMin) - 1) << 4);
  for (const std::vector<uint8_t>* part :
       {&bits.bytes(), static_cast<const std::vector<uint8_t>*>(&literals)}) {
    StoreLe<uint32_t>(to, static_cast<uint32_t>(part->size()));
    to = std::copy(part->begin(), part->end(), to + sizeof(uint32_t));
  }
  std::memcpy(to, stream, stream_bytes);
  return front + stream_bytes;
}

Status DecodeSymbols(Bytes coded, const SymbolTable* shared, MutableBytes out) {
  if (coded.empty()) return Corrupt("no bytes");
  const uint32_t kind = coded[0] & 15, states = kRansStatesMin << (coded[0] >> 4);
  coded = coded.subspan(1);
  if (kind == kStored && states == kRansStatesMin) {
    if (coded.size() != out.size())
      return Corrupt(absl::StrCat(coded.size(), " are stored, expected ", out.size()));
    if (!out.empty()) std::memcpy(out.data(), coded.data(), out.size());
    return OkStatus();
  }
  if ((kind != kOwnTables && kind != kSharedTable) || states > kRansStatesMax)
    return Corrupt(absl::StrCat("kind ", kind, " with ", states, " states"));
  if (kind == kSharedTable && shared == nullptr) return Corrupt("a table is needed that was not given");
  // The bits of the tables, then the escaped bytes.
  Bytes parts[2];
  for (Bytes& part : parts) {
    if (coded.size() < sizeof(uint32_t)) return Corrupt("they end in a length");
    const uint32_t length = LoadLe<uint32_t>(coded.data());
    coded = coded.subspan(sizeof(uint32_t));
    if (length > coded.size()) return Corrupt(absl::StrCat("a part of ", length, " bytes in ", coded.size()));
    part = coded.first(length);
    coded = coded.subspan(length);
  }
  const Bytes escaped = parts[1];
  kernels::RansStream stream;
  if (!kernels::RansOpen(coded.data(), coded.size(), states, &stream))
    return Corrupt(absl::StrCat("a stream of ", coded.size(), " bytes, or a state in it, is out of range"));
  BitReader reader(parts[0]);
  uint32_t entries[1u << kRansBitsMax];
  if (kind == kSharedTable) {
    shared->FillEntries(entries);
    kernels::RansDecode({shared->bits(), entries}, &stream, out.data(), out.size());
  }
  for (size_t first = 0; kind == kOwnTables && first < out.size(); first += kTableSymbols) {
    const MutableBytes part = out.subspan(first, kTableSymbols);
    KVT_ASSIGN_OR_RETURN(const SymbolTable table, SymbolTable::Read(&reader));
    if (table.escape() != SymbolTable::kNoEscape)
      return Corrupt(absl::StrCat("a table has escape ", table.escape(), ", expected none"));
    table.FillEntries(entries);
    kernels::RansDecode({table.bits(), entries}, &stream, part.data(), part.size());
  }
  if (reader.used() != parts[0].size())
    return Corrupt(absl::StrCat(reader.used(), " of ", parts[0].size(), " bytes of tables are used"));
  if (!kernels::RansAtEnd(stream)) return Corrupt("the stream does not end with its symbols");
  size_t next = 0;
  if (kind == kSharedTable && shared->escape() != SymbolTable::kNoEscape) {
    const auto escape = static_cast<uint8_t>(shared->escape());
    for (auto at = std::find(out.begin(), out.end(), escape); at != out.end();
         at = std::find(at + 1, out.end(), escape)) {
      if (next == escaped.size()) return Corrupt(absl::StrCat("more than ", escaped.size(), " escapes"));
      *at = escaped[next++];
    }
  }
  if (next != escaped.size())
    return Corrupt(absl::StrCat(next, " escapes, ", escaped.size(), " escaped bytes"));
  return OkStatus();
}

}  // namespace kvt
