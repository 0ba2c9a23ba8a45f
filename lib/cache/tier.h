// Tier: a place where frames live. Keys are opaque and frames are bytes that their user has verified.
//
// Thread-safe. A put has two steps, so that many share one flush: Stage takes the bytes, Commit shows them.
#ifndef KVARTET_LIB_CACHE_TIER_H_
#define KVARTET_LIB_CACHE_TIER_H_

#include <memory>

#include "absl/types/span.h"
#include "cache/frame_buffer.h"
#include "key/key.h"

namespace kvt {

struct TierStats {
  uint64_t frames = 0;
  uint64_t bytes = 0;  // of visible frames
  uint64_t capacity_bytes = 0;
  uint64_t evictions = 0;
  uint64_t torn = 0;
};

// A frame that a tier has taken but does not show yet.
class StagedPut {
 public:
  virtual ~StagedPut() = default;
};

class Tier {
 public:
  virtual ~Tier() = default;

  // Takes a frame. KVT_ERR_LIMIT: larger than the capacity. Every staged put is to be committed, by the
  // thread that staged it or another.
  virtual StatusOr<std::unique_ptr<StagedPut>> Stage(const Key& key, const FrameRef& frame) = 0;
  // Makes a staged put visible in the place of the key's frame, if it has one, and durable as far as the tier
  // is; what is staged by then may be flushed with it. After an error the put is gone.
  virtual Status Commit(std::unique_ptr<StagedPut> put) = 0;

  // The frame, kept while the result lives; read into `scratch` if it has to be read. KVT_ERR_NOT_FOUND.
  // Counts as a use.
  virtual StatusOr<FrameRef> Get(const Key& key, FrameScratch* scratch) = 0;
  // At least the FrameFrontBytes of the key's frame, likewise. Counts as no use.
  virtual StatusOr<FrameRef> Front(const Key& key, FrameScratch* scratch) = 0;
  virtual bool Contains(const Key& key) const = 0;
  // Removes the keys that are there; returns how many were.
  virtual StatusOr<uint64_t> Remove(absl::Span<const Key> keys) = 0;

  // Whether staged frames keep their FrameRef::owner, so that it pays to bring one.
  virtual bool KeepsBuffers() const = 0;
  // Staged bytes after which a thread should commit.
  virtual uint64_t BatchBytes() const = 0;
  // Gives back about `bytes` of the runtime's budget by evicting; returns what it gave. Nothing when the
  // budget could never hold as much.
  virtual uint64_t Shed(uint64_t bytes) = 0;

  virtual Status Flush() = 0;
  // Flushes and lets go of what other processes may wait for. Afterwards calls give KVT_ERR_CLOSED or
  // KVT_ERR_NOT_FOUND.
  virtual void Close() = 0;
  virtual TierStats stats() const = 0;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CACHE_TIER_H_
