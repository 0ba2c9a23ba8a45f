// RowWindow: the rows (all heads of one token in one stream of one layer) of a view, as contiguous memory.
//
// Rows that lie contiguous in the host's memory are used in place; others are gathered to, and scattered
// from, scratch memory that is allocated once. One thread at a time.
#ifndef KVARTET_LIB_CODEC_ROWS_H_
#define KVARTET_LIB_CODEC_ROWS_H_

#include <array>
#include <memory>
#include <vector>

#include "model/model.h"
#include "model/view.h"

namespace kvt {

class RowWindow {
 public:
  static constexpr size_t kRowsMax = 1024;

  RowWindow(const View& view, const Model& model) : view_(view), model_(model) {}

  // The rows that the calls below speak of; tokens count from `token_begin`.
  void Select(uint32_t layer, uint32_t stream, uint64_t token_begin);

  uint32_t element() const { return view_.element(); }
  size_t row_bytes() const { return row_bytes_; }
  // Bytes from `token` on, up to `count` rows of them, that lie one after another: the rows of the result's
  // count times row_bytes(). Null with one row when the row itself is not contiguous.
  struct Run {
    uint8_t* data;
    uint64_t rows;
  };
  Run Contiguous(uint64_t token, uint64_t count) const;

  // Up to kRowsMax rows to read.
  const void* const* Read(uint64_t token, size_t count);
  // The same rows to write; Commit takes them to the view.
  void* const* Write(uint64_t token, size_t count);
  void Commit();

  // Memory of the codec that uses the window, made at the first call and kept as long as the window. One type
  // for each window.
  template <typename T>
  T& Work() {
    if (work_ == nullptr) work_ = std::make_shared<T>();
    return *static_cast<T*>(work_.get());
  }

 private:
  uint8_t* Scratch(size_t count);
  void Move(uint64_t token, uint8_t* row, bool gather) const;

  const View& view_;
  const Model& model_;
  uint32_t layer_ = 0, stream_ = 0, heads_ = 0, dim_ = 0;
  uint64_t token_begin_ = 0;
  size_t element_bytes_ = 0, row_bytes_ = 0;
  bool in_place_ = false;
  uint64_t written_ = 0;
  size_t written_count_ = 0;
  std::array<void*, kRowsMax> rows_;
  std::vector<uint8_t> scratch_;
  std::shared_ptr<void> work_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_ROWS_H_
