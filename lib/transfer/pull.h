// The operations of a Remote: pull, push and stream. Made on any thread, then used on the loop's alone.
#ifndef KVARTET_LIB_TRANSFER_PULL_H_
#define KVARTET_LIB_TRANSFER_PULL_H_

#include <vector>

#include "transfer/remote.h"

namespace kvt::transfer {

// Where the items of an operation report; memory of the caller's.
struct Results {
  kvt_status_t* statuses = nullptr;
  uint64_t* lengths = nullptr;  // null for a push
  size_t count = 0;
};

// Which items are decided, and the sums for the completion.
class Tally {
 public:
  explicit Tally(const Results& results) : results_(results), decided_(results.count, false) {}
  bool decided(size_t i) const { return decided_[i]; }
  bool complete() const { return left_ == 0; }
  size_t left() const { return left_; }
  void Decide(size_t i, kvt_status_t status, uint64_t length);
  kvt_completion_t Settle(kvt_status_t code);

 private:
  const Results results_;
  std::vector<bool> decided_;
  size_t left_ = results_.count;
  uint64_t ok_ = 0, bytes_ = 0;
};

// Frame i goes to base + i * stride.
class PullOp : public RemoteOp {
 public:
  PullOp(std::vector<Key> keys, uint8_t* base, size_t stride, const Results& results)
      : keys_(std::move(keys)), base_(base), stride_(stride), tally_(results) {}
  OperationKind kind() const override { return OperationKind::kPull; }
  size_t keys() const override { return keys_.size(); }
  size_t requests() const override { return (keys_.size() + kKeysPerMessage - 1) / kKeysPerMessage; }
  void Start(Remote* remote) override;
  Status OnFrames(Remote* remote, const wire::Frames& frames, net::Channel::Targets* targets) override;
  void OnTarget(Remote* remote, size_t index) override;
  Status OnEnd(Remote* remote, const wire::End& end) override;
  kvt_completion_t Settle(kvt_status_t code) override { return tally_.Settle(code); }

 private:
  // A run of keys that went out in one message.
  struct Chunk {
    uint64_t request;
    size_t first, count, left;
  };
  Chunk* Find(uint64_t request);
  void Decide(Remote* remote, Chunk* chunk, size_t item, kvt_status_t status, uint64_t length);

  const std::vector<Key> keys_;
  uint8_t* const base_;
  const size_t stride_;
  Tally tally_;
  std::vector<Chunk> chunks_;
  // The payload that is being read.
  Chunk* current_ = nullptr;
  std::vector<std::pair<size_t, uint64_t>> arriving_;
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_PULL_H_
