#include "cache/frame_buffer.h"

#include <algorithm>

#include "kvartet/codec.h"

namespace kvt {

StatusOr<std::shared_ptr<FrameBuffer>> FrameBuffer::Allocate(const std::shared_ptr<Runtime>& runtime,
                                                             uint64_t bytes) {
  if (bytes > KVT_FRAME_BYTES_MAX)
    return Error(KVT_ERR_LIMIT,
                 absl::StrCat("a frame of ", bytes, " bytes; the format allows ", KVT_FRAME_BYTES_MAX));
  const uint64_t capacity = (std::max<uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  KVT_ASSIGN_OR_RETURN(MemoryLease lease, MemoryLease::Take(runtime, capacity));
  auto* data = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, capacity));
  if (data == nullptr)
    return Error(KVT_ERR_OUT_OF_MEMORY, absl::StrCat("no memory for a frame of ", bytes, " bytes"));
  return std::shared_ptr<FrameBuffer>(new FrameBuffer(std::move(lease), data, capacity));
}

StatusOr<std::shared_ptr<FrameBuffer>> FrameScratch::Take(uint64_t bytes) {
  if (buffer_ == nullptr || buffer_.use_count() != 1 || buffer_->capacity() < bytes) {
    // Given back first: a budget with room for one frame is enough.
    buffer_.reset();
    KVT_ASSIGN_OR_RETURN(buffer_, FrameBuffer::Allocate(runtime_, bytes));
  }
  return buffer_;
}

}  // namespace kvt
