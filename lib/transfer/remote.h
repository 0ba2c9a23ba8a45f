// Remote: the connection to a peer that this node connected to, and the operations on it.
//
// Submit and Disconnect are thread-safe; everything else belongs to the loop's thread. The
// caller's memory is written only on that thread and only while its operation is unfinished, so once an
// operation has its completion its memory is not touched.
//
// Liveness: while operations are outstanding both sides send a heartbeat when they have sent nothing for a
// quarter of the other's stall time. No byte for the whole stall time ends the operations with
// KVT_ERR_STALLED; the connection stays and may recover.
#ifndef KVARTET_LIB_TRANSFER_REMOTE_H_
#define KVARTET_LIB_TRANSFER_REMOTE_H_

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "net/channel.h"
#include "net/lookup.h"
#include "net/socket.h"
#include "transfer/core.h"
#include "transfer/wire.h"

namespace kvt::transfer {

class Remote;

// One operation of the caller's. On the loop's thread: Start once; then messages; Settle once at the end.
class RemoteOp {
 public:
  virtual ~RemoteOp() = default;
  virtual OperationKind kind() const = 0;
  // Requests and keys that count against the limits of a connection.
  virtual size_t keys() const = 0;
  virtual size_t requests() const = 0;

  virtual void Start(Remote* remote) = 0;
  virtual Status OnFrames(Remote* remote, const wire::Frames& frames, net::Channel::Targets* targets);
  virtual void OnTarget(Remote* remote, size_t index);
  virtual Status OnResults(Remote* remote, const wire::PushResults& results);
  virtual Status OnEnd(Remote* remote, const wire::End& end) = 0;
  // There is room to send. False when nothing is left to send.
  virtual bool Send(Remote*) { return false; }
  // Gives what is not decided `code` and says how it all ended.
  virtual kvt_completion_t Settle(kvt_status_t code) = 0;

 private:
  friend class Remote;
  std::shared_ptr<Operation> operation_;
  std::vector<uint64_t> request_ids_;
  net::Loop::TimerId deadline_ = 0;
  bool started_ = false, finished_ = false;
};

class Remote : public net::Channel::Handler, public std::enable_shared_from_this<Remote> {
 public:
  // Called once on the loop's thread: ready, or why not.
  using Ready = std::function<void(Status)>;
  Remote(std::shared_ptr<Core> core, net::Place place, std::shared_ptr<net::TokenBucket> bucket)
      : core_(std::move(core)), place_(std::move(place)), bucket_(std::move(bucket)) {}

  // Any thread. KVT_ERR_PEER_DEAD when the connection is gone; KVT_ERR_LIMIT.
  StatusOr<uint64_t> Submit(const std::shared_ptr<RemoteOp>& op, Deadline deadline) ABSL_LOCKS_EXCLUDED(mu_);
  // Any thread: closes the connection; operations on it end with KVT_ERR_CANCELLED.
  void Disconnect();
  // Any thread: whether the name of the host is still being looked up.
  bool looking_up() const { return looking_up_.load(std::memory_order_relaxed); }

  // The loop's thread from here on.
  // `servers`: as net::Lookup::Start.
  void Connect(const std::string& servers, Ready ready);
  void Close(Status reason);
  bool closed() const { return state_ == State::kClosed; }
  Core& core() { return *core_; }

  // For operations.
  uint64_t NewRequest(RemoteOp* op);
  void DropRequest(RemoteOp* op, uint64_t request);
  void SendMessage(net::Message message) { channel_->Send(std::move(message)); }
  // Whether messages of a request are not sent to their end.
  bool Sends(uint64_t request) const { return channel_->Holds(request); }
  // The longest frame that the peer takes.
  uint64_t peer_max_frame_bytes() const { return peer_max_frame_bytes_; }
  // Ends an operation whose items are all decided (`code` is for those that are not).
  void Finish(RemoteOp* op, kvt_status_t code);
  void Part(const RemoteOp& op, kvt_completion_t completion);

  Status OnMessage(const net::Header& header, Bytes control, net::Channel::Targets* targets) override;
  Status OnTarget(size_t index) override;
  void OnDrained() override;
  void OnBroken(Status reason) override;
  void OnClosed(Status reason) override;

 private:
  enum class State { kConnecting, kHello, kReady, kClosed };

  void OnAddress(const net::Address& address);
  void OnConnected();
  void FailConnect(const Status& reason);
  Status OnHello(Bytes control);
  Status OnFrames(Bytes control, uint64_t payload, net::Channel::Targets* targets);
  void StartOp(const std::shared_ptr<RemoteOp>& op);
  void TryStartOp(const std::shared_ptr<RemoteOp>& op);
  void CancelOp(const std::shared_ptr<RemoteOp>& op);
  void FailAll(kvt_status_t code);
  void Pump();
  void Tick();
  void SetClosed(const Status& reason) ABSL_LOCKS_EXCLUDED(mu_);
  std::chrono::milliseconds stall() const { return std::chrono::milliseconds(core_->identity.stall_ms); }

  const std::shared_ptr<Core> core_;
  const net::Place place_;
  const std::shared_ptr<net::TokenBucket> bucket_;

  State state_ = State::kConnecting;
  std::atomic<bool> looking_up_{false};
  std::shared_ptr<net::Lookup> lookup_;
  net::Fd connecting_;
  net::Loop::WatchId connect_watch_ = 0;
  net::Loop::TimerId tick_ = 0, handshake_ = 0;
  Ready ready_;
  std::unique_ptr<net::Channel> channel_;
  std::chrono::milliseconds heartbeat_{500};  // what the peer wants
  uint64_t peer_max_frame_bytes_ = 0;
  net::Loop::Time busy_since_{};  // when operations became outstanding

  uint64_t next_request_ = 1;
  absl::flat_hash_map<RemoteOp*, std::shared_ptr<RemoteOp>> ops_;
  absl::flat_hash_map<uint64_t, RemoteOp*> requests_;
  // Cancelled requests whose answers may still come, until the peer confirms.
  absl::flat_hash_map<uint64_t, bool> forgotten_;
  std::deque<RemoteOp*> senders_;
  RemoteOp* reading_ = nullptr;  // whose payload is being read

  Mutex mu_;
  std::string closed_text_ ABSL_GUARDED_BY(mu_);  // why the connection is closed; empty while it is not
  size_t pending_keys_ ABSL_GUARDED_BY(mu_) = 0;
  size_t pending_requests_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_REMOTE_H_
