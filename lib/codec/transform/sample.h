// RowSample: a uniform sample of rows that come one after another, in f16, by Vitter's algorithm R with a
// fixed seed: the same rows give the same sample.
//
// One thread at a time.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_SAMPLE_H_
#define KVARTET_LIB_CODEC_TRANSFORM_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvt {

class RowSample {
 public:
  static constexpr uint64_t kRows = 1024;
  static constexpr uint64_t kNone = ~uint64_t{0};

  explicit RowSample(size_t columns) : columns_(columns) {}

  // Where the next row goes, or kNone.
  uint64_t NextSlot();
  size_t columns() const { return columns_; }
  size_t rows() const { return halves_.size() / columns_; }
  uint16_t* Row(uint64_t slot) { return halves_.data() + slot * columns_; }
  const uint16_t* Row(uint64_t slot) const { return halves_.data() + slot * columns_; }

  // Its whole state, to save and restore.
  uint64_t seen_ = 0, random_ = 0x9e3779b97f4a7c15;
  std::vector<uint16_t> halves_;
  std::vector<int8_t> importance_;  // of each row

 private:
  size_t columns_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_SAMPLE_H_
