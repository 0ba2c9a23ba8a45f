// PushOp: sends frames from the caller's memory into the cache that a peer serves. Used on the loop's thread.
#ifndef KVARTET_LIB_TRANSFER_PUSH_H_
#define KVARTET_LIB_TRANSFER_PUSH_H_

#include <vector>

#include "transfer/pull.h"

namespace kvt::transfer {

class PushOp : public RemoteOp {
 public:
  // `frames` are one after another.
  PushOp(std::vector<Key> keys, const uint8_t* frames, std::vector<uint64_t> lengths, const Results& results)
      : keys_(std::move(keys)), lengths_(std::move(lengths)), tally_(results), next_byte_(frames) {}
  OperationKind kind() const override { return OperationKind::kPush; }
  size_t keys() const override { return keys_.size(); }
  size_t requests() const override { return 1; }
  void Start(Remote* remote) override;
  bool Send(Remote* remote) override;
  Status OnResults(Remote* remote, const wire::PushResults& results) override;
  Status OnEnd(Remote* remote, const wire::End& end) override;
  kvt_completion_t Settle(kvt_status_t code) override { return tally_.Settle(code); }

 private:
  const std::vector<Key> keys_;
  const std::vector<uint64_t> lengths_;
  Tally tally_;
  uint64_t request_ = 0;
  size_t next_ = 0;  // first frame that was not sent
  const uint8_t* next_byte_;
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_PUSH_H_
