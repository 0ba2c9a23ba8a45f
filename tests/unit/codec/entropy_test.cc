// Coding of bytes with static tables: round trips, lengths, tables of one's own and shared ones, hostile
// bytes.
#include "codec/entropy/entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

namespace kvt::test {
namespace {

using testing::HasSubstr;

constexpr size_t kGoldenBytes = 2343;
constexpr uint64_t kGoldenSum = 13733171174526531613u;

std::vector<uint8_t> Normal(size_t count, double deviation, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(128, deviation);
  std::vector<uint8_t> symbols(count);
  for (uint8_t& symbol : symbols)
    symbol = static_cast<uint8_t>(std::lrint(std::clamp(normal(random), 0.0, 255.0)));
  return symbols;
}

std::vector<uint8_t> Coded(const std::vector<uint8_t>& symbols, const SymbolTable* shared = nullptr) {
  std::vector<uint8_t> out(EntropyBound(symbols.size()), 0xee);
  out.resize(EncodeSymbols(Bytes(symbols), shared, MutableBytes(out.data(), out.size())));
  return out;
}

Status Decode(const std::vector<uint8_t>& coded, size_t count, const SymbolTable* shared,
              std::vector<uint8_t>* out) {
  // Exact copies, for the sanitizers to watch.
  const std::unique_ptr<uint8_t[]> bytes(new uint8_t[coded.size()]);
  std::copy(coded.begin(), coded.end(), bytes.get());
  out->assign(count, 0);
  return DecodeSymbols(Bytes(bytes.get(), coded.size()), shared, MutableBytes(out->data(), count));
}

double Entropy(const std::vector<uint8_t>& symbols) {
  double counts[256] = {}, bits = 0;
  for (const uint8_t symbol : symbols) ++counts[symbol];
  for (const double count : counts)
    if (count != 0) bits -= count * std::log2(count / static_cast<double>(symbols.size()));
  return bits / 8;
}

SymbolTable TableOf(const std::vector<uint8_t>& symbols, bool escapes) {
  SymbolCounts counts{};
  for (const uint8_t symbol : symbols) ++counts[symbol];
  return SymbolTable::Of(counts, 12, escapes);
}

TEST(EntropyTest, EveryLengthComesBack) {
  for (const double deviation : {0.0, 0.2, 3.0, 40.0, 1000.0}) {
    for (const size_t count : {0u, 1u, 63u, 64u, 100u, 1000u, 20000u, 70000u, 300000u}) {
      const std::vector<uint8_t> symbols = Normal(count, deviation, 1), coded = Coded(symbols);
      std::vector<uint8_t> back;
      const Status status = Decode(coded, count, nullptr, &back);
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(back, symbols) << count << " of deviation " << deviation;
    }
  }
}

TEST(EntropyTest, SizeIsNearTheEntropy) {
  for (const double deviation : {0.3, 2.0, 10.0, 30.0}) {
    const std::vector<uint8_t> symbols = Normal(1 << 20, deviation, 2);
    // Rounded frequencies, the tables and the states.
    EXPECT_LT(static_cast<double>(Coded(symbols).size()), Entropy(symbols) * 1.015 + 1000) << deviation;
  }
}

TEST(EntropyTest, WhatDoesNotPayIsStored) {
  std::mt19937 random(3);
  std::vector<uint8_t> symbols(50000);
  for (uint8_t& symbol : symbols) symbol = static_cast<uint8_t>(random());
  const std::vector<uint8_t> coded = Coded(symbols);
  EXPECT_EQ(coded.size(), symbols.size() + 1);
  EXPECT_EQ(coded[0], 0);
}

TEST(EntropyTest, SharedTablesEscapeWhatTheyLack) {
  const std::vector<uint8_t> known = Normal(100000, 4, 4);
  const SymbolTable table = TableOf(known, /*escapes=*/true);
  std::vector<uint8_t> symbols = Normal(30000, 4.5, 5);
  for (size_t i = 0; i < symbols.size(); i += 97) symbols[i] = static_cast<uint8_t>(i);
  const std::vector<uint8_t> coded = Coded(symbols, &table);
  EXPECT_EQ(coded[0] & 15, 2);
  std::vector<uint8_t> back;
  ASSERT_TRUE(Decode(coded, symbols.size(), &table, &back).ok());
  EXPECT_EQ(back, symbols);
  EXPECT_THAT(std::string(Decode(coded, symbols.size(), nullptr, &back).message()),
              HasSubstr("a table is needed"));
}

TEST(EntropyTest, TablesAreReadAsTheyWereWritten) {
  for (const uint32_t bits : {8u, 10u, 12u}) {
    for (const double deviation : {0.0, 1.0, 12.0, 1000.0}) {
      for (const bool escapes : {false, true}) {
        SymbolCounts counts{};
        for (const uint8_t symbol : Normal(5000, deviation, 6)) ++counts[symbol];
        const SymbolTable table = SymbolTable::Of(counts, bits, escapes);
        BitWriter writer;
        table.Write(&writer);
        BitReader reader{Bytes(writer.bytes())};
        const auto read = SymbolTable::Read(&reader);
        ASSERT_TRUE(read.ok()) << read.status();
        uint32_t sum = 0;
        for (uint32_t s = 0; s < 256; ++s) {
          ASSERT_EQ(read->frequency(s), table.frequency(s));
          ASSERT_TRUE(counts[s] == 0 || table.frequency(s) != 0);
          sum += table.frequency(s);
        }
        EXPECT_EQ(sum, 1u << bits);
        EXPECT_EQ(read->escape(), table.escape());
        EXPECT_EQ(reader.used(), writer.bytes().size());
      }
    }
  }
}

// The bytes are those of the format on every machine.
TEST(EntropyTest, BytesAreThoseOfTheFormat) {
  std::vector<uint8_t> symbols;
  uint32_t x = 1;
  for (int i = 0; i < 4000; ++i) {
    x = x * 1664525 + 1013904223;
    symbols.push_back(static_cast<uint8_t>((x >> 24 & 7) + (x >> 16 & 7) * (x >> 12 & 3)));
  }
  const std::vector<uint8_t> coded = Coded(symbols);
  uint64_t sum = 0;
  for (const uint8_t byte : coded) sum = sum * 31 + byte;
  EXPECT_EQ(coded.size(), kGoldenBytes);
  EXPECT_EQ(sum, kGoldenSum);
}

TEST(EntropyTest, EveryCutAndEveryLongerOneIsRefused) {
  const std::vector<uint8_t> symbols = Normal(3000, 6, 7), coded = Coded(symbols);
  ASSERT_EQ(coded[0] & 15, 1);
  std::vector<uint8_t> back;
  for (size_t size = 0; size < coded.size(); ++size) {
    const std::vector<uint8_t> cut(coded.begin(), coded.begin() + static_cast<int64_t>(size));
    ASSERT_EQ(CodeOf(Decode(cut, symbols.size(), nullptr, &back)), KVT_ERR_CORRUPT) << size;
  }
  std::vector<uint8_t> longer = coded;
  longer.insert(longer.end(), 2, 0);
  EXPECT_FALSE(Decode(longer, symbols.size(), nullptr, &back).ok());
  EXPECT_FALSE(Decode(coded, symbols.size() - 1, nullptr, &back).ok());
  EXPECT_FALSE(Decode(coded, symbols.size() + 1, nullptr, &back).ok());
  EXPECT_FALSE(Decode({0, 1, 2}, 3, nullptr, &back).ok());
  EXPECT_FALSE(Decode({0x31, 1, 2}, 3, nullptr, &back).ok());
  EXPECT_FALSE(Decode({7, 1, 2}, 3, nullptr, &back).ok());
}

TEST(EntropyTest, DamageDoesNoHarm) {
  const std::vector<uint8_t> known = Normal(3000, 6, 8);
  const SymbolTable shared = TableOf(known, /*escapes=*/true);
  std::mt19937 random(9);
  for (const SymbolTable* table : {static_cast<const SymbolTable*>(nullptr), &shared}) {
    const std::vector<uint8_t> coded = Coded(Normal(2000, 9, 10), table);
    std::vector<uint8_t> back;
    for (int round = 0; round < 4000; ++round) {
      std::vector<uint8_t> damaged = coded;
      for (uint32_t i = 0; i < 1 + random() % 3; ++i)
        damaged[random() % (round % 2 == 0 ? 40 : damaged.size())] = static_cast<uint8_t>(random());
      const Status status = Decode(damaged, 2000, table, &back);
      ASSERT_TRUE(status.ok() || CodeOf(status) == KVT_ERR_CORRUPT) << status;
    }
  }
}

}  // namespace
}  // namespace kvt::test
