#include "codec/rows.h"

#include <algorithm>
#include <cstring>

namespace kvt {

void RowWindow::Select(uint32_t layer, uint32_t stream, uint64_t token_begin) {
  layer_ = layer;
  stream_ = stream;
  token_begin_ = token_begin;
  heads_ = view_.head_end() - view_.head_begin();
  dim_ = model_.head_dim(stream);
  element_bytes_ = ElementBytes(view_.element());
  row_bytes_ = element_bytes_ * heads_ * dim_;
  const auto width = static_cast<int64_t>(element_bytes_);
  in_place_ = (dim_ == 1 || view_.element_stride(stream) == width) &&
              (heads_ == 1 || view_.head_stride(stream) == width * dim_);
}

RowWindow::Run RowWindow::Contiguous(uint64_t token, uint64_t count) const {
  if (!in_place_) return {nullptr, 1};
  const uint64_t at = token_begin_ + token;
  const bool dense = view_.token_stride(stream_) == static_cast<int64_t>(row_bytes_);
  return {view_.Token(layer_, stream_, at), dense ? std::min(count, view_.Run(at)) : 1};
}

uint8_t* RowWindow::Scratch(size_t count) {
  if (scratch_.size() < count * row_bytes_) scratch_.resize(count * row_bytes_);
  return scratch_.data();
}

void RowWindow::Move(uint64_t token, uint8_t* row, bool gather) const {
  const int64_t element_stride = view_.element_stride(stream_);
  uint8_t* head = view_.Token(layer_, stream_, token_begin_ + token);
  for (uint32_t h = 0; h < heads_; ++h, head += view_.head_stride(stream_)) {
    uint8_t* element = head;
    for (uint32_t e = 0; e < dim_; ++e, element += element_stride, row += element_bytes_) {
      if (gather) {
        std::memcpy(row, element, element_bytes_);
      } else {
        std::memcpy(element, row, element_bytes_);
      }
    }
  }
}

const void* const* RowWindow::Read(uint64_t token, size_t count) {
  if (in_place_) {
    for (size_t i = 0; i < count; ++i) rows_[i] = view_.Token(layer_, stream_, token_begin_ + token + i);
    return rows_.data();
  }
  uint8_t* row = Scratch(count);
  for (size_t i = 0; i < count; ++i, row += row_bytes_) {
    Move(token + i, row, /*gather=*/true);
    rows_[i] = row;
  }
  return rows_.data();
}

void* const* RowWindow::Write(uint64_t token, size_t count) {
  if (in_place_) {
    written_count_ = 0;
    for (size_t i = 0; i < count; ++i) rows_[i] = view_.Token(layer_, stream_, token_begin_ + token + i);
    return rows_.data();
  }
  written_ = token;
  written_count_ = count;
  uint8_t* row = Scratch(count);
  for (size_t i = 0; i < count; ++i, row += row_bytes_) rows_[i] = row;
  return rows_.data();
}

void RowWindow::Commit() {
  for (size_t i = 0; i < written_count_; ++i)
    Move(written_ + i, static_cast<uint8_t*>(rows_[i]), /*gather=*/false);
  written_count_ = 0;
}

}  // namespace kvt
