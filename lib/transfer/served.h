// Served: a connection that a peer made to this node, whose pulls, streams and pushes it answers.
//
// Belongs to the loop's thread. Frames of a store that blocks are fetched and stored on the runtime's
// workers, one task a connection at a time; memory for pushed frames counts against the runtime's limit, and
// reading pauses while too much of it waits to be stored.
#ifndef KVARTET_LIB_TRANSFER_SERVED_H_
#define KVARTET_LIB_TRANSFER_SERVED_H_

#include <deque>
#include <map>
#include <memory>

#include "base/boundary.h"
#include "net/channel.h"
#include "transfer/core.h"
#include "transfer/frame_store.h"
#include "transfer/streams.h"
#include "transfer/wire.h"

namespace kvt::transfer {

// What the connections of a node serve. Thread-safe.
class Shelf {
 public:
  std::shared_ptr<FrameStore> store() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(&mu_);
    return store_;
  }
  Status Serve(std::shared_ptr<FrameStore> store) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(&mu_);
    if (store_ != nullptr && !store_->Gone())
      return Error(KVT_ERR_ALREADY_EXISTS, "the node serves a cache already");
    store_ = std::move(store);
    return OkStatus();
  }

 private:
  mutable Mutex mu_;
  std::shared_ptr<FrameStore> store_ ABSL_GUARDED_BY(mu_);
};

class Served : public net::Channel::Handler, public std::enable_shared_from_this<Served> {
 public:
  Served(std::shared_ptr<Core> core, std::shared_ptr<Shelf> shelf, std::shared_ptr<Streams> streams,
         net::Fd fd, std::shared_ptr<net::TokenBucket> bucket);

  // `refused`: why the handshake is answered with a Goodbye, or OK.
  Status Start(Status refused);
  void Close(Status reason) { channel_.Close(std::move(reason)); }
  bool open() const { return channel_.open(); }
  // Whether answers are on their way. A stream that is not opened yet does not count.
  bool busy() const;
  // A stream may have changed.
  void OnStreams();

  Status OnMessage(const net::Header& header, Bytes control, net::Channel::Targets* targets) override;
  Status OnTarget(size_t index) override;
  void OnDrained() override;
  void OnBroken(Status reason) override;
  void OnClosed(Status reason) override;

 private:
  struct Pulled {
    uint64_t request = 0, slot_bytes = 0;
    std::vector<Key> keys;
    MemoryLease lease;  // for the keys
    size_t next = 0;
  };
  struct StreamPulled {
    Key key;
    std::shared_ptr<Stream> stream;
    size_t next = 0;
  };
  struct Buffer {
    MemoryLease lease;
    std::unique_ptr<uint8_t[]> bytes;
    size_t size = 0;
  };
  // A pushed frame on its way to the store; without a buffer its status is known, or it marks a cancel.
  struct Put {
    uint64_t request = 0;
    uint32_t index = 0;
    Key key;
    std::shared_ptr<Buffer> buffer;
    kvt_status_t status = KVT_OK;
    bool cancel = false;
  };
  // Requests without their last answer.
  size_t outstanding() const {
    return pulls_.size() + streams_pulled_.size() + puts_.size() + arriving_.size() + (storing_ ? 1 : 0);
  }

  using Fetched = std::vector<StatusOr<Pinned>>;

  Status OnHello(Bytes control);
  Status OnPull(Bytes control);
  Status OnPullStream(Bytes control);
  Status OnPush(Bytes control, uint64_t payload, net::Channel::Targets* targets);
  Status OnCancel(Bytes control);
  Status CheckRequest(uint64_t request);
  void Pump();
  bool PumpPull();
  bool PumpStreams();
  void Answer(const Fetched& fetched);
  Status NewBuffer(uint64_t size, Buffer* buffer);
  void StorePuts();
  void Report(const std::vector<Put>& puts);
  void PauseIfFull();
  void Tick();
  void TryTick();
  // Runs a step that did not begin with an event of the channel's; what it throws closes the connection.
  template <typename Step>
  void Guard(Step&& step) {
    if (Status failed = CaughtIn(std::forward<Step>(step)); !failed.ok()) Close(std::move(failed));
  }

  const std::shared_ptr<Core> core_;
  const std::shared_ptr<Shelf> shelf_;
  const std::shared_ptr<Streams> streams_;
  net::Channel channel_;
  Status refused_;
  bool greeted_ = false, fetching_ = false, storing_ = false;
  net::Loop::TimerId handshake_ = 0, tick_ = 0;
  std::chrono::milliseconds heartbeat_{500}, peer_stall_{2000};

  uint64_t peer_max_frame_bytes_ = 0;
  uint64_t last_request_ = 0;
  size_t pending_keys_ = 0;
  std::deque<Pulled> pulls_;
  std::map<uint64_t, StreamPulled> streams_pulled_;
  std::vector<Put> arriving_;  // the push whose payload is being read; empty when it is there
  std::deque<Put> puts_;       // until they are reported
  uint64_t put_bytes_ = 0;
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_SERVED_H_
