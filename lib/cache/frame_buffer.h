// FrameBuffer: 64-byte aligned memory for one frame, charged to the runtime's budget for as long as it lives.
//
// Filled by one thread, then shared for reading; nothing here locks.
#ifndef KVARTET_LIB_CACHE_FRAME_BUFFER_H_
#define KVARTET_LIB_CACHE_FRAME_BUFFER_H_

#include <cstdlib>
#include <memory>

#include "base/bytes.h"
#include "base/runtime.h"

namespace kvt {

class FrameBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  // KVT_ERR_LIMIT when the runtime's budget has no room; KVT_ERR_OUT_OF_MEMORY. The bytes are not
  // initialised.
  static StatusOr<std::shared_ptr<FrameBuffer>> Allocate(const std::shared_ptr<Runtime>& runtime,
                                                         uint64_t bytes);

  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  // Bytes held, a multiple of kAlignment.
  uint64_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  FrameBuffer(MemoryLease lease, uint8_t* data, uint64_t capacity)
      : lease_(std::move(lease)), data_(data), capacity_(capacity) {}

  MemoryLease lease_;
  std::unique_ptr<uint8_t[], Free> data_;
  uint64_t capacity_;
};

// A frame's bytes and who keeps them: with an owner they stay as long as this does, without one they are
// borrowed for the call.
struct FrameRef {
  Bytes bytes;
  std::shared_ptr<const FrameBuffer> owner;
};

// One thread's buffer, used again while nobody else has kept it.
class FrameScratch {
 public:
  explicit FrameScratch(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

  // A buffer of at least `bytes`; it is the caller's until the next Take, or for as long as a copy is kept.
  StatusOr<std::shared_ptr<FrameBuffer>> Take(uint64_t bytes);

 private:
  const std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<FrameBuffer> buffer_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CACHE_FRAME_BUFFER_H_
