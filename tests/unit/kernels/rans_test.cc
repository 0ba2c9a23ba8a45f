// Range coding and planes on every instruction set that this processor has, against the scalar reference.
#include "cpu/rans.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <memory>
#include <random>
#include <vector>

#include "cpu/planes.h"

namespace kvt::kernels {
namespace {

class TargetsTest : public testing::Test {
 protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

  template <typename Body>
  void ForTargets(const Body& body) {
    hwy::SetSupportedTargetsForTest(0);
    const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
    ASSERT_FALSE(targets.empty());
    for (const int64_t target : targets) {
      hwy::SetSupportedTargetsForTest(target);
      SCOPED_TRACE(hwy::TargetName(target));
      body();
    }
  }
};

void StoreState(std::vector<uint8_t>& bytes, size_t state, uint32_t value) {
  std::memcpy(bytes.data() + state * kRansStateBytes, &value, sizeof value);
}

class RansTest : public TargetsTest {
 protected:
  // With and without gathers, whichever this processor would take.
  template <typename Body>
  void ForDecoders(const Body& body) {
    ForTargets([&] {
      for (const bool singly : {false, true}) {
        SCOPED_TRACE(singly);
        body(singly);
      }
    });
  }
};
class PlanesTest : public TargetsTest {};

// Frequencies that fall by `step` from symbol to symbol, all of them `symbols`.
struct Table {
  Table(uint32_t table_bits, uint32_t symbols, uint32_t step) : bits(table_bits), entries(1u << table_bits) {
    uint32_t left = 1u << bits;
    for (uint32_t s = 0; s < symbols; ++s) {
      const uint32_t rest = symbols - 1 - s;
      frequencies[s * 255 / (symbols - 1)] =
          static_cast<uint16_t>(rest == 0 ? left : std::max(1u, (left - rest) / step));
      left -= frequencies[s * 255 / (symbols - 1)];
    }
    reference::RansFillEntries(frequencies, entries.data());
    uint32_t start = 0;
    for (uint32_t s = 0; s < kRansSymbols; ++s) {
      codes[s] = RansCodeOf(start, frequencies[s], bits);
      start += frequencies[s];
    }
  }
  RansDecodeTable decode() const { return {bits, entries.data()}; }
  std::vector<uint8_t> Draw(size_t count, std::mt19937& random) const {
    std::vector<uint8_t> symbols(count);
    for (uint8_t& symbol : symbols) symbol = static_cast<uint8_t>(entries[random() % entries.size()] >> 24);
    return symbols;
  }

  uint32_t bits;
  uint16_t frequencies[kRansSymbols] = {};
  std::vector<uint32_t> entries;
  RansCode codes[kRansSymbols];
};

TEST_F(RansTest, DivisionIsExactForEveryFrequency) {
  std::mt19937 random(1);
  for (uint32_t frequency = 1; frequency < 4096; ++frequency) {
    const RansCode code = RansCodeOf(0, frequency, 12);
    for (int i = 0; i < 200; ++i) {
      uint32_t x = (random() % code.limit) | (i == 0 ? code.limit - 1 : 0);
      if (i < 3) x = code.limit - 1 - static_cast<uint32_t>(i);
      const auto quotient = static_cast<uint32_t>((uint64_t{x} * code.reciprocal >> 32) >> code.shift);
      ASSERT_EQ(x + code.bias + quotient * code.complement, ((x / frequency) << 12) + x % frequency)
          << frequency;
    }
  }
}

// Runs with two tables in one stream, of lengths around the number of states.
TEST_F(RansTest, EveryTargetDecodesWhatWasCoded) {
  std::mt19937 random(2);
  for (const uint32_t states : {32u, 64u, 128u}) {
    for (const uint32_t bits : {8u, 9u, 10u, 11u, 12u}) {
      const Table first(bits, 2, 300), second(bits, bits == 8 ? 200 : 250, 20);
      for (const size_t length : {0u, 1u, 31u, 32u, 127u, 128u, 129u, 1000u, 20000u}) {
        const std::vector<uint8_t> a = first.Draw(length, random), b = second.Draw(length / 2 + 7, random);
        std::vector<uint8_t> memory(2 * (a.size() + b.size()) + 4 * states);
        RansEncoder encoder(states, memory.data() + memory.size());
        encoder.Add(second.codes, b.data(), b.size());
        encoder.Add(first.codes, a.data(), a.size());
        const uint8_t* begin = encoder.Finish();
        // A copy with nothing behind it, at an odd address, for the sanitizers to watch.
        const auto size = static_cast<size_t>(memory.data() + memory.size() - begin);
        const std::unique_ptr<uint8_t[]> copy(new uint8_t[size + 1]);
        std::copy(begin, begin + size, copy.get() + 1);
        ForDecoders([&](bool singly) {
          RansStream stream;
          ASSERT_TRUE(RansOpen(copy.get() + 1, size, states, &stream));
          std::vector<uint8_t> read_a(a.size()), read_b(b.size());
          RansDecode(first.decode(), &stream, read_a.data(), read_a.size(), singly);
          RansDecode(second.decode(), &stream, read_b.data(), read_b.size(), singly);
          ASSERT_EQ(read_a, a);
          ASSERT_EQ(read_b, b);
          ASSERT_TRUE(RansAtEnd(stream));
        });
      }
    }
  }
}

// Tables of every width, few symbols and many, even and steep; nothing is written behind the last entry.
TEST_F(RansTest, EveryTargetFillsAlike) {
  for (uint32_t bits = kRansBitsMin; bits <= kRansBitsMax; ++bits) {
    for (const uint32_t symbols : {2u, 3u, 40u, 200u, 256u}) {
      for (const uint32_t step : {2u, 9u, 256u}) {
        const Table table(bits, symbols, step);
        ForTargets([&] {
          const std::unique_ptr<uint32_t[]> entries(new uint32_t[table.entries.size()]);
          RansFillEntries(table.frequencies, bits, entries.get());
          ASSERT_TRUE(std::equal(table.entries.begin(), table.entries.end(), entries.get()));
        });
      }
    }
  }
}

// What no coder wrote: symbols and states are those of the reference, and nothing outside is touched.
TEST_F(RansTest, NoiseAndCutStreamsDecodeAlike) {
  std::mt19937 random(3);
  const Table table(12, 100, 30);
  for (int round = 0; round < 60; ++round) {
    const uint32_t states = 32u << random() % 3;
    const size_t size = states * kRansStateBytes + 2 * (random() % 400);
    const std::unique_ptr<uint8_t[]> bytes(new uint8_t[size]);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(random());
    for (uint32_t s = 0; s < states; ++s) bytes[4 * s + 3] &= 0x7f, bytes[4 * s + 1] |= 0x80;
    const size_t count = random() % 3000;
    RansStream expected;
    ASSERT_TRUE(RansOpen(bytes.get(), size, states, &expected));
    std::vector<uint8_t> symbols(count);
    reference::RansDecode(table.decode(), &expected, 0, symbols.data(), count);
    ForDecoders([&](bool singly) {
      RansStream stream;
      ASSERT_TRUE(RansOpen(bytes.get(), size, states, &stream));
      const std::unique_ptr<uint8_t[]> out(new uint8_t[count]);
      RansDecode(table.decode(), &stream, out.get(), count, singly);
      ASSERT_TRUE(std::equal(symbols.begin(), symbols.end(), out.get()));
      ASSERT_EQ(stream.words, expected.words);
      ASSERT_EQ(stream.missing, expected.missing);
      ASSERT_TRUE(std::equal(stream.x, stream.x + states, expected.x));
    });
  }
}

TEST_F(RansTest, StreamsThatCannotBeAreRefused) {
  std::vector<uint8_t> bytes(4 * 32, 0x80);
  RansStream stream;
  EXPECT_FALSE(RansOpen(bytes.data(), bytes.size(), 32, &stream));  // states of 2^31 and more
  for (int s = 0; s < 32; ++s) StoreState(bytes, s, kRansLow);
  EXPECT_TRUE(RansOpen(bytes.data(), bytes.size(), 32, &stream));
  EXPECT_TRUE(RansAtEnd(stream));
  EXPECT_FALSE(RansOpen(bytes.data(), bytes.size() - 1, 32, &stream));
  EXPECT_FALSE(RansOpen(bytes.data(), bytes.size(), 64, &stream));
  StoreState(bytes, 31, kRansLow - 1);
  EXPECT_FALSE(RansOpen(bytes.data(), bytes.size(), 32, &stream));
  StoreState(bytes, 31, kRansLow + 1);
  ASSERT_TRUE(RansOpen(bytes.data(), bytes.size(), 32, &stream));
  EXPECT_FALSE(RansAtEnd(stream));
  bytes.resize(bytes.size() + 3);
  EXPECT_FALSE(RansOpen(bytes.data(), bytes.size(), 32, &stream));
}

// The planes of every shape around the tile, and rows from them; rows at odd addresses.
TEST_F(PlanesTest, EveryTargetPartsAndJoinsAlike) {
  std::mt19937 random(4);
  const PlaneShape shapes[] = {{1, 0}, {2, 0}, {2, 1}, {4, 0}, {4, 1}};
  const struct {
    size_t tokens, channels;
  } sizes[] = {{1, 1}, {15, 17}, {16, 16}, {33, 40}, {50, 64}, {7, 64}, {64, 3}};
  for (const PlaneShape& shape : shapes) {
    for (const auto& size : sizes) {
      const size_t row = size.channels * shape.width;
      std::vector<uint8_t> memory(size.tokens * (row + 1) + 1);
      for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random());
      std::vector<const uint8_t*> rows;
      for (size_t t = 0; t < size.tokens; ++t) rows.push_back(memory.data() + 1 + t * (row + 1));
      const auto run = [&](const auto& split, const auto& join) {
        std::vector<uint8_t> planes(row * size.tokens), back(memory.size());
        std::vector<uint8_t*> to, into;
        for (size_t i = 0; i < row; ++i) to.push_back(planes.data() + i * size.tokens);
        for (size_t t = 0; t < size.tokens; ++t) into.push_back(back.data() + (rows[t] - memory.data()));
        split(rows.data(), to.data());
        join(to.data(), into.data());
        for (size_t t = 0; t < size.tokens; ++t) EXPECT_TRUE(std::equal(rows[t], rows[t] + row, into[t]));
        return planes;
      };
      const auto expected = run(
          [&](const uint8_t* const* from, uint8_t* const* to) {
            const size_t t = size.tokens, c = size.channels;
            if (shape.width == 1) reference::SplitPlanes<uint8_t>(shape.rotate, from, 0, t, 0, c, c, to);
            if (shape.width == 2) reference::SplitPlanes<uint16_t>(shape.rotate, from, 0, t, 0, c, c, to);
            if (shape.width == 4) reference::SplitPlanes<uint32_t>(shape.rotate, from, 0, t, 0, c, c, to);
          },
          [&](uint8_t* const* from, uint8_t* const* to) {
            const size_t t = size.tokens, c = size.channels;
            if (shape.width == 1) reference::JoinPlanes<uint8_t>(shape.rotate, from, 0, t, 0, c, c, to);
            if (shape.width == 2) reference::JoinPlanes<uint16_t>(shape.rotate, from, 0, t, 0, c, c, to);
            if (shape.width == 4) reference::JoinPlanes<uint32_t>(shape.rotate, from, 0, t, 0, c, c, to);
          });
      ForTargets([&] {
        const auto planes =
            run([&](const uint8_t* const* from,
                    uint8_t* const* to) { SplitPlanes(shape, from, size.tokens, size.channels, to); },
                [&](uint8_t* const* from, uint8_t* const* to) {
                  JoinPlanes(shape, from, size.tokens, size.channels, to);
                });
        ASSERT_EQ(planes, expected);
      });
    }
  }
}

}  // namespace
}  // namespace kvt::kernels
