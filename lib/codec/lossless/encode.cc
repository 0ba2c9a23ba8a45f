#include <cstring>

#include "codec/entropy/entropy.h"
#include "codec/lossless/chunk.h"

namespace kvt::lossless {
namespace {

// Below so many tokens a table for each part of a turn has too little to learn from.
constexpr size_t kTurnedTokensMin = 256;
// Bytes of a plane that pay for one class, and the most classes of a plane.
constexpr uint64_t kBytesPerClass = 4096, kClassesMost = 32;

struct Plane {
  Classes classes;
  bool turned = false;
  PlaneItems items;
};

class Encoder {
 public:
  Encoder(const ChunkShape& shape, const std::vector<const uint8_t*>& planes, const Turns& turns)
      : shape_(shape), bytes_(planes), turns_(turns), planes_(shape.planes.width) {}

  std::vector<uint8_t> Encode() {
    bool turned = false;
    for (size_t p = 0; p < planes_.size(); ++p) {
      Choose(p);
      turned = turned || planes_[p].turned;
    }
    if (!turned) turns_ = {{}, {0}};
    WriteFront();
    WriteRaw();
    WriteStream();
    return std::move(out_);
  }

 private:
  // Classes of a plane with and without turns, whichever costs less.
  void Choose(size_t p) {
    Plane& plane = planes_[p];
    plane.classes = ClassesOf(p, /*turned=*/false);
    // The byte that has the sign, and with it the exponents or, once the sign has moved, the end of the
    // element.
    const bool may_turn = p == 0 || (shape_.planes.rotate != 0 && p + 1 == shape_.planes.width);
    if (may_turn && !turns_.steps.empty() && shape_.tokens >= kTurnedTokensMin) {
      Classes turned = ClassesOf(p, /*turned=*/true);
      if (turned.cost < plane.classes.cost) {
        plane.classes = std::move(turned);
        plane.turned = true;
      }
    }
    plane.items.Set(turns_, shape_.channels, plane.turned);
    if (plane.classes.tables.empty()) return;
    plane.items.SetClasses(plane.classes.of.data(), static_cast<uint32_t>(plane.classes.tables.size()) + 1);
  }

  Classes ClassesOf(size_t p, bool turned) {
    PlaneItems items;
    items.Set(turns_, shape_.channels, turned);
    Items counted;
    std::vector<uint16_t> counts(kBins * kernels::kRansSymbols);
    for (size_t c = 0; c < shape_.channels; ++c) {
      const uint8_t* bytes = bytes_[p * shape_.channels + c];
      const size_t bins = items.count(c);
      std::fill(counts.begin(), counts.begin() + static_cast<int64_t>(bins * kernels::kRansSymbols), 0);
      const uint32_t step = bins == 1 ? 0 : turns_.steps[turns_.Of(c) - 1];
      for (size_t t = 0; t < shape_.tokens; ++t) ++counts[BinOf(step, t) * kernels::kRansSymbols + bytes[t]];
      for (size_t bin = 0; bin < bins; ++bin) counted.Add(counts.data() + bin * kernels::kRansSymbols);
    }
    const uint64_t most =
        std::clamp<uint64_t>(shape_.tokens * shape_.channels / kBytesPerClass, 1, kClassesMost);
    return Classify(counted, p == 0 && shape_.planes.rotate == 0, static_cast<uint32_t>(most));
  }

  void WriteFront() {
    const uint64_t symbols = shape_.tokens * shape_.channels;
    states_ = StatesFor(symbols);
    out_.push_back(static_cast<uint8_t>(std::bit_width(states_ / kernels::kRansStatesMin) - 1));
    out_.push_back(static_cast<uint8_t>(turns_.steps.size()));
    for (const uint32_t step : turns_.steps) Append(step);
    if (!turns_.steps.empty()) {
      Append(static_cast<uint16_t>(turns_.of.size()));
      out_.insert(out_.end(), turns_.of.begin(), turns_.of.end());
    }
    BitWriter tables;
    for (const Plane& plane : planes_) {
      out_.push_back(static_cast<uint8_t>(plane.classes.tables.size()));
      out_.push_back(plane.turned ? 1 : 0);
      if (plane.classes.tables.empty()) continue;
      ClassNumbers(plane.classes.of).Write(&tables);
      for (const SymbolTable& table : plane.classes.tables) table.Write(&tables);
    }
    out_.insert(out_.end(), tables.bytes().begin(), tables.bytes().end());
  }

  template <typename T>
  void Append(T value) {
    out_.resize(out_.size() + sizeof value);
    StoreLe<T>(out_.data() + out_.size() - sizeof value, value);
  }

  // The bytes of an item in the block from token `first` on.
  void Take(const TurnOrder& order, size_t p, size_t channel, size_t bin, uint64_t first, uint8_t* to) const {
    const uint8_t* bytes = bytes_[p * shape_.channels + channel] + first;
    if (planes_[p].items.count(channel) == 1) {
      std::memcpy(to, bytes, order.tokens());
      return;
    }
    const uint32_t turn = turns_.Of(channel);
    const uint16_t* starts = order.starts(turn);
    const uint16_t* tokens = order.tokens(turn);
    for (size_t i = starts[bin]; i < starts[bin + 1]; ++i) *to++ = bytes[tokens[i]];
  }

  // Raw bytes to `raw`, all others to coded_.
  void TakeBlock(size_t p, uint64_t first, size_t tokens, uint8_t* raw) {
    const size_t block = first / BlockTokens(shape_.channels);
    if (orders_.size() <= block) orders_.resize(block + 1);
    TurnOrder& order = orders_[block];
    order.Sort(turns_, first, tokens);
    PlaneItems& items = planes_[p].items;
    items.Place(turns_, order, &begins_);
    coded_.resize(begins_.back());
    for (size_t c = 0; c < shape_.channels; ++c) {
      for (size_t bin = 0; bin < items.count(c); ++bin) {
        const size_t item = items.first(c) + bin;
        if (!items.raw(item)) {
          Take(order, p, c, bin, first, coded_.data() + items.place(item));
        } else if (raw != nullptr) {
          Take(order, p, c, bin, first, raw + items.place(item));
        }
      }
    }
  }

  void WriteRaw() {
    const size_t length_at = out_.size();
    Append(uint32_t{0});
    const uint64_t block = BlockTokens(shape_.channels);
    for (uint64_t first = 0; first < shape_.tokens; first += block) {
      const size_t tokens = std::min<uint64_t>(block, shape_.tokens - first);
      for (size_t p = 0; p < planes_.size(); ++p) {
        const size_t at = out_.size();
        if (planes_[p].classes.tables.empty()) {
          for (size_t c = 0; c < shape_.channels; ++c) {
            const uint8_t* bytes = bytes_[p * shape_.channels + c] + first;
            out_.insert(out_.end(), bytes, bytes + tokens);
          }
          continue;
        }
        raw_.resize(tokens * shape_.channels);
        TakeBlock(p, first, tokens, raw_.data());
        out_.insert(
            out_.begin() + static_cast<int64_t>(at), raw_.begin(),
            raw_.begin() + static_cast<int64_t>(begins_.back() - begins_[planes_[p].classes.tables.size()]));
      }
    }
    StoreLe<uint32_t>(out_.data() + length_at,
                      static_cast<uint32_t>(out_.size() - length_at - sizeof(uint32_t)));
  }

  void WriteStream() {
    uint64_t most = 0;
    std::vector<std::vector<kernels::RansCode>> codes(planes_.size());
    for (size_t p = 0; p < planes_.size(); ++p) {
      const auto& tables = planes_[p].classes.tables;
      if (tables.empty()) continue;
      most += shape_.tokens * shape_.channels + planes_[p].items.size();
      codes[p].resize((tables.size() + 1) * kernels::kRansSymbols);
      for (size_t k = 0; k < tables.size(); ++k)
        tables[k].FillCodes(codes[p].data() + k * kernels::kRansSymbols);
      ClassNumbers(planes_[p].classes.of).FillCodes(codes[p].data() + tables.size() * kernels::kRansSymbols);
    }
    std::vector<uint8_t> words(most * kernels::kRansWordBytes + states_ * kernels::kRansStateBytes);
    kernels::RansEncoder encoder(states_, words.data() + words.size());
    // Backwards: the last symbol is coded first.
    const uint64_t block = BlockTokens(shape_.channels);
    for (uint64_t first = (shape_.tokens - 1) / block * block;; first -= block) {
      for (size_t p = planes_.size(); p-- > 0;) {
        const size_t tables = planes_[p].classes.tables.size();
        if (tables == 0) continue;
        TakeBlock(p, first, std::min<uint64_t>(block, shape_.tokens - first), nullptr);
        for (size_t k = tables; k-- > 0;) {
          encoder.Add(codes[p].data() + k * kernels::kRansSymbols, coded_.data() + begins_[k],
                      begins_[k + 1] - begins_[k]);
        }
      }
      if (first == 0) break;
    }
    for (size_t p = planes_.size(); p-- > 0;) {
      const Classes& classes = planes_[p].classes;
      if (classes.tables.empty()) continue;
      encoder.Add(codes[p].data() + classes.tables.size() * kernels::kRansSymbols, classes.of.data(),
                  classes.of.size());
    }
    const uint8_t* stream = encoder.Finish();
    out_.insert(out_.end(), stream, static_cast<const uint8_t*>(words.data() + words.size()));
  }

  const ChunkShape& shape_;
  const std::vector<const uint8_t*>& bytes_;
  Turns turns_;
  std::vector<TurnOrder> orders_;  // of each block
  std::vector<Plane> planes_;
  uint32_t states_ = 0;
  std::vector<uint64_t> begins_;
  std::vector<uint8_t> out_, coded_, raw_;
};

}  // namespace

std::vector<uint8_t> EncodeChunk(const ChunkShape& shape, const std::vector<const uint8_t*>& planes,
                                 const Turns& turns) {
  return Encoder(shape, planes, turns).Encode();
}

}  // namespace kvt::lossless
