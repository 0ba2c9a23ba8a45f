// Grouping the items of a plane into classes that share a table each.
#ifndef KVARTET_LIB_CODEC_LOSSLESS_CLASSES_H_
#define KVARTET_LIB_CODEC_LOSSLESS_CLASSES_H_

#include <vector>

#include "codec/entropy/symbol_table.h"

namespace kvt::lossless {

// How often bytes occur in an item, those that do; 4,096 bytes at most.
struct Occurrence {
  uint8_t symbol;
  uint16_t count;
};
class Items {
 public:
  void Add(const uint16_t counts[kernels::kRansSymbols]) {
    uint64_t total = 0;
    for (uint32_t s = 0; s < kernels::kRansSymbols; ++s) {
      if (counts[s] == 0) continue;
      occurrences_.push_back({static_cast<uint8_t>(s), counts[s]});
      total += counts[s];
    }
    begins_.push_back(static_cast<uint32_t>(occurrences_.size()));
    totals_.push_back(total);
  }
  size_t size() const { return totals_.size(); }
  uint64_t total(size_t item) const { return totals_[item]; }
  absl::Span<const Occurrence> operator[](size_t item) const {
    return absl::MakeConstSpan(occurrences_).subspan(begins_[item], begins_[item + 1] - begins_[item]);
  }

 private:
  std::vector<Occurrence> occurrences_;
  std::vector<uint32_t> begins_{0};
  std::vector<uint64_t> totals_;
};

struct Classes {
  std::vector<SymbolTable> tables;
  std::vector<uint8_t> of;  // of each item; tables.size(): stored as it is
  uint64_t cost = 0;        // of all bytes, tables and numbers of classes, in SymbolTable::kCostUnit
};

// At most `most` classes. `sign_first`: the top bit of a byte is a sign and the others a magnitude.
// Deterministic.
Classes Classify(const Items& items, bool sign_first, uint32_t most);

// Of the numbers of the items' classes.
SymbolTable ClassNumbers(const std::vector<uint8_t>& of);

}  // namespace kvt::lossless

#endif  // KVARTET_LIB_CODEC_LOSSLESS_CLASSES_H_
