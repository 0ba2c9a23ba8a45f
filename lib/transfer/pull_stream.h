// PullStreamOp: takes a stream's parts one after another into the caller's memory. Used on the loop's thread.
#ifndef KVARTET_LIB_TRANSFER_PULL_STREAM_H_
#define KVARTET_LIB_TRANSFER_PULL_STREAM_H_

#include "transfer/remote.h"

namespace kvt::transfer {

class PullStreamOp : public RemoteOp {
 public:
  PullStreamOp(const Key& key, uint8_t* base, size_t cap, uint64_t* offsets, uint64_t* lengths,
               size_t part_cap)
      : key_(key), base_(base), cap_(cap), offsets_(offsets), lengths_(lengths), part_cap_(part_cap) {}
  OperationKind kind() const override { return OperationKind::kPullStream; }
  size_t keys() const override { return 1; }
  size_t requests() const override { return 1; }
  void Start(Remote* remote) override;
  Status OnFrames(Remote* remote, const wire::Frames& frames, net::Channel::Targets* targets) override;
  void OnTarget(Remote* remote, size_t index) override;
  Status OnEnd(Remote* remote, const wire::End& end) override;
  kvt_completion_t Settle(kvt_status_t code) override;

 private:
  struct Place {
    uint64_t offset, length;
  };
  const Key key_;
  uint8_t* const base_;
  const size_t cap_;
  uint64_t* const offsets_;
  uint64_t* const lengths_;
  const size_t part_cap_;
  uint64_t request_ = 0, next_offset_ = 0, bytes_ = 0;
  uint32_t next_index_ = 0;
  size_t parts_ = 0;
  bool complete_ = false;
  std::vector<Place> arriving_;
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_PULL_STREAM_H_
