// CacheStore: the cache as the store of frames that a node serves. Thread-safe.
#ifndef KVARTET_LIB_NODE_CACHE_STORE_H_
#define KVARTET_LIB_NODE_CACHE_STORE_H_

#include "cache/cache.h"
#include "transfer/frame_store.h"

namespace kvt {

class CacheStore : public transfer::FrameStore {
 public:
  explicit CacheStore(std::shared_ptr<Cache> cache) : cache_(std::move(cache)) {}

  StatusOr<transfer::Pinned> Get(const Key& key) override {
    KVT_ASSIGN_OR_RETURN(const FrameRef frame, cache_->Get(key));
    return transfer::Pinned{frame.bytes, frame.owner};
  }
  Status Put(const Key& key, transfer::Pinned frame) override { return cache_->Put(key, frame.bytes); }
  bool Blocks() const override { return !cache_->InMemory(); }

 private:
  const std::shared_ptr<Cache> cache_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_NODE_CACHE_STORE_H_
