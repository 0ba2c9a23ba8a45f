// Streams that this node produces: frames appended by the host, read by any number of peers from the first
// on. Thread-safe.
#ifndef KVARTET_LIB_TRANSFER_STREAMS_H_
#define KVARTET_LIB_TRANSFER_STREAMS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transfer/core.h"

namespace kvt::transfer {

class Streams;

class Stream {
 public:
  enum class State { kOpen, kComplete, kAborted };

  Stream(std::shared_ptr<Core> core, std::weak_ptr<Streams> streams, const Key& key)
      : core_(std::move(core)), streams_(std::move(streams)), key_(key) {}
  ~Stream();
  const Key& key() const { return key_; }

  // Copies one whole frame of this node's model and namespace; its checksums are the receiver's to verify.
  Status Append(Bytes frame) ABSL_LOCKS_EXCLUDED(mu_);
  Status Finish(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the stream for the host: an unfinished one is aborted, and peers no longer find it.
  void Forget() ABSL_LOCKS_EXCLUDED(mu_);

  // Part `index` if it is there; the state says whether more can come.
  struct Look {
    bool present = false;
    net::Pinned part;
    State state = State::kOpen;
  };
  Look Part(size_t index) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Block {
    MemoryLease lease;
    std::vector<uint8_t> bytes;
  };
  const std::shared_ptr<Core> core_;
  const std::weak_ptr<Streams> streams_;
  const Key key_;
  mutable Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kOpen;
  std::vector<std::shared_ptr<const Block>> parts_ ABSL_GUARDED_BY(mu_);
};

class Streams : public std::enable_shared_from_this<Streams> {
 public:
  // `changed` is called after each change of a stream, on the thread that made it and without a lock.
  Streams(std::shared_ptr<Core> core, std::function<void()> changed)
      : core_(std::move(core)), changed_(std::move(changed)) {}

  // KVT_ERR_ALREADY_EXISTS.
  StatusOr<std::shared_ptr<Stream>> Open(const Key& key) ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<Stream> Find(const Key& key) const ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const Stream* stream) ABSL_LOCKS_EXCLUDED(mu_);
  void Changed() const { changed_(); }

 private:
  const std::shared_ptr<Core> core_;
  const std::function<void()> changed_;
  mutable Mutex mu_;
  absl::flat_hash_map<Key, std::weak_ptr<Stream>> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_STREAMS_H_
