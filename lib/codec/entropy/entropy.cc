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

enum Kind : uint8_t { kStored = 0, kOwnTable = 1, kSharedTable = 2 };

// Fewer symbols than this are never coded with a table of their own.
constexpr uint64_t kLeastSymbols = 64;

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
  const SymbolTable own = shared != nullptr
                              ? *shared
                              : SymbolTable::Of(Count(symbols), BitsFor(symbols.size()), /*escapes=*/false);
  const uint32_t states = StatesFor(symbols.size());
  BitWriter table;
  if (shared == nullptr) own.Write(&table);
  std::vector<uint8_t> literals;
  if (own.escape() != SymbolTable::kNoEscape) {
    for (const uint8_t symbol : symbols)
      if (!own.Holds(symbol)) literals.push_back(symbol);
  }
  kernels::RansCode codes[kRansSymbols];
  own.FillCodes(codes);
  std::vector<uint8_t> words(symbols.size() * kernels::kRansWordBytes + states * kernels::kRansStateBytes);
  kernels::RansEncoder encoder(states, words.data() + words.size());
  encoder.Add(codes, symbols.data(), symbols.size());
  const uint8_t* stream = encoder.Finish();
  const auto stream_bytes = static_cast<uint64_t>(words.data() + words.size() - stream);
  const uint64_t front = 1 + table.bytes().size() + sizeof(uint32_t) + literals.size();
  if (front + stream_bytes >= EntropyBound(symbols.size())) return Store(symbols, out);
  uint8_t* to = out.data();
  *to++ = static_cast<uint8_t>((shared != nullptr ? kSharedTable : kOwnTable) |
                               (std::bit_width(states / kRansStatesMin) - 1) << 4);
  to = std::copy(table.bytes().begin(), table.bytes().end(), to);
  StoreLe<uint32_t>(to, static_cast<uint32_t>(literals.size()));
  to = std::copy(literals.begin(), literals.end(), to + sizeof(uint32_t));
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
  if ((kind != kOwnTable && kind != kSharedTable) || states > kRansStatesMax)
    return Corrupt(absl::StrCat("kind ", kind, " with ", states, " states"));
  if (kind == kSharedTable && shared == nullptr) return Corrupt("a table is needed that was not given");
  BitReader reader(coded);
  StatusOr<SymbolTable> table = kind == kOwnTable ? SymbolTable::Read(&reader) : *shared;
  KVT_RETURN_IF_ERROR(table.status());
  coded = coded.subspan(reader.used());
  if (coded.size() < sizeof(uint32_t)) return Corrupt("they end in the number of escapes");
  const uint32_t literals = LoadLe<uint32_t>(coded.data());
  coded = coded.subspan(sizeof(uint32_t));
  if (literals > coded.size()) return Corrupt(absl::StrCat(literals, " escaped bytes in ", coded.size()));
  const Bytes escaped = coded.first(literals);
  coded = coded.subspan(literals);
  kernels::RansStream stream;
  if (!kernels::RansOpen(coded.data(), coded.size(), states, &stream))
    return Corrupt(absl::StrCat("a stream of ", coded.size(), " bytes, or a state in it, is out of range"));
  uint32_t entries[1u << kRansBitsMax];
  table->FillEntries(entries);
  kernels::RansDecode({table->bits(), entries}, &stream, out.data(), out.size());
  if (!kernels::RansAtEnd(stream)) return Corrupt("the stream does not end with its symbols");
  size_t next = 0;
  if (table->escape() != SymbolTable::kNoEscape) {
    const auto escape = static_cast<uint8_t>(table->escape());
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
