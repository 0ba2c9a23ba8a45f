// CacheStore: the cache as the store of frames that a node serves. Thread-safe.
#ifndef KVARTET_LIB_NODE_CACHE_STORE_H_
#define KVARTET_LIB_NODE_CACHE_STORE_H_

#include "cache/cache.h"
#include "transfer/frame_store.h"

namespace kvt {

class CacheStore : public transfer::FrameStore {
 public:
  explicit CacheStore(const std::shared_ptr<Cache>& cache) : cache_(cache), blocks_(!cache->InMemory()) {}

  StatusOr<transfer::Pinned> Get(const Key& key) override {
    const auto cache = cache_.lock();
    if (cache == nullptr) return Destroyed();
    KVT_ASSIGN_OR_RETURN(const FrameRef frame, cache->Get(key));
    return transfer::Pinned{frame.bytes, frame.owner};
  }
  Status Put(const Key& key, transfer::Pinned frame) override {
    const auto cache = cache_.lock();
    return cache == nullptr ? Destroyed() : cache->Put(key, frame.bytes);
  }
  bool Blocks() const override { return blocks_; }
  bool Gone() const override {
    const auto cache = cache_.lock();
    return cache == nullptr || cache->shut_down();
  }

 private:
  static Status Destroyed() { return Error(KVT_ERR_CLOSED, "the cache that the node served was destroyed"); }

  // Not the node's to keep: once the host has destroyed the cache, its runtime is to be let go.
  const std::weak_ptr<Cache> cache_;
  const bool blocks_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_NODE_CACHE_STORE_H_
