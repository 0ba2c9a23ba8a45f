#include "transfer/remote.h"

#include <algorithm>

#include "base/boundary.h"

namespace kvt::transfer {
namespace {

using net::Channel;
using net::MessageType;

// A peer that confirms no cancels is given up.
constexpr size_t kMaxForgotten = 4096;

Status Unexpected(MessageType type) {
  return Error(KVT_ERR_CORRUPT,
               absl::StrCat("message of type ", static_cast<int>(type), " is not expected here"));
}

}  // namespace

Status RemoteOp::OnFrames(Remote*, const wire::Frames&, Channel::Targets*) {
  return Unexpected(MessageType::kFrames);
}
void RemoteOp::OnTarget(Remote*, size_t) {}
Status RemoteOp::OnResults(Remote*, const wire::PushResults&) {
  return Unexpected(MessageType::kPushResults);
}

StatusOr<uint64_t> Remote::Submit(const std::shared_ptr<RemoteOp>& op, Deadline deadline) {
  {
    MutexLock lock(&mu_);
    if (!closed_text_.empty()) return Error(KVT_ERR_PEER_DEAD, closed_text_);
    if (pending_requests_ + op->requests() > kMaxRequests || pending_keys_ + op->keys() > kMaxKeys)
      return Error(KVT_ERR_LIMIT,
                   absl::StrCat(pending_requests_, " requests for ", pending_keys_,
                                " keys are outstanding on this peer; the most is ", kMaxRequests, " for ",
                                kMaxKeys, " keys; this call adds ", op->requests(), " for ", op->keys()));
    pending_requests_ += op->requests();
    pending_keys_ += op->keys();
  }
  const auto cancel = [self = weak_from_this(), weak = std::weak_ptr(op)] {
    const auto remote = self.lock();
    const auto cancelled = weak.lock();
    if (remote == nullptr || cancelled == nullptr) return;
    remote->core_->loop->Post([remote, cancelled] { remote->CancelOp(cancelled); });
  };
  auto operation = core_->operations->Begin(op->kind(), deadline, cancel);
  if (!operation.ok()) {
    MutexLock lock(&mu_);
    pending_requests_ -= op->requests();
    pending_keys_ -= op->keys();
    return operation.status();
  }
  op->operation_ = *operation;
  core_->loop->Post([self = shared_from_this(), op] { self->StartOp(op); });
  return (*operation)->id();
}

void Remote::Disconnect() {
  core_->loop->Post([self = shared_from_this()] {
    self->FailAll(KVT_ERR_CANCELLED);
    self->Close(Error(KVT_ERR_PEER_DEAD, "this node closed the connection"));
  });
}

void Remote::Connect(const std::string& servers, Ready ready) {
  ready_ = std::move(ready);
  if (!net::NeedsLookup(place_)) {
    const auto address = net::Resolve(place_);
    return address.ok() ? OnAddress(*address) : FailConnect(address.status());
  }
  looking_up_.store(true, std::memory_order_relaxed);
  auto lookup = net::Lookup::Start(core_->loop.get(), place_, servers, [this](StatusOr<net::Address> found) {
    looking_up_.store(false, std::memory_order_relaxed);
    lookup_ = nullptr;
    found.ok() ? OnAddress(*found) : FailConnect(found.status());
  });
  if (!lookup.ok()) return FailConnect(lookup.status());
  lookup_ = *std::move(lookup);
}

void Remote::OnAddress(const net::Address& address) {
  auto fd = net::StartConnect(address);
  if (!fd.ok()) return FailConnect(fd.status());
  connecting_ = *std::move(fd);
  auto watch = core_->loop->Watch(connecting_.get(), EPOLLOUT, [this](uint32_t) { OnConnected(); });
  if (!watch.ok()) return FailConnect(watch.status());
  connect_watch_ = *watch;
}

void Remote::OnConnected() {
  const Status connected = net::ConnectResult(connecting_.get(), place_.text);
  core_->loop->Forget(std::exchange(connect_watch_, 0));
  if (!connected.ok()) return FailConnect(connected);
  Channel::Options options;
  options.max_payload_bytes = std::max(core_->identity.max_frame_bytes, kSharedPayload);
  options.bucket = bucket_;
  options.traffic = core_->traffic;
  channel_ = std::make_unique<Channel>(core_->loop.get(), std::move(connecting_), this, options);
  state_ = State::kHello;
  // Before it can fail: OnClosed takes it back.
  core_->counters.connections.fetch_add(1, std::memory_order_relaxed);
  const Status started = channel_->Start(shared_from_this());
  if (!started.ok()) return FailConnect(started);
  net::Message hello;
  hello.type = MessageType::kHello;
  hello.control = HelloControl(core_->identity);
  SendMessage(std::move(hello));
  handshake_ = core_->loop->At(core_->loop->now() + stall(), [this] {
    handshake_ = 0;
    FailConnect(Error(KVT_ERR_STALLED, absl::StrCat(place_.text,
                                                    " accepted the connection but did not "
                                                    "answer the handshake for ",
                                                    stall().count(), " ms")));
  });
  channel_->Flush();
}

void Remote::FailConnect(const Status& reason) {
  const auto keep = shared_from_this();
  const Ready ready = std::exchange(ready_, nullptr);
  Close(reason);
  if (ready) ready(Annotate(reason, absl::StrCat("connect to ", place_.text)));
}

void Remote::Close(Status reason) {
  lookup_ = nullptr;
  core_->loop->Drop(std::exchange(handshake_, 0));
  core_->loop->Forget(std::exchange(connect_watch_, 0));
  connecting_.Reset();
  if (channel_ != nullptr && channel_->open()) {
    channel_->Close(std::move(reason));
  } else if (state_ != State::kClosed) {
    state_ = State::kClosed;
    SetClosed(reason);
    if (const Ready ready = std::exchange(ready_, nullptr)) ready(std::move(reason));
  }
}

void Remote::SetClosed(const Status& reason) {
  MutexLock lock(&mu_);
  if (closed_text_.empty())
    closed_text_ = absl::StrCat("the connection to ", place_.text, " is closed: ", reason.message());
}

void Remote::OnClosed(Status reason) {
  const auto keep = shared_from_this();
  core_->counters.connections.fetch_sub(1, std::memory_order_relaxed);
  core_->loop->Drop(std::exchange(tick_, 0));
  state_ = State::kClosed;
  SetClosed(reason);
  if (ready_) return FailConnect(reason);
  FailAll(CodeOf(reason));
}

void Remote::OnBroken(Status reason) {
  core_->counters.Count(reason);
  core_->runtime->Log(KVT_LOG_WARNING, absl::StrCat(place_.text, ": ", reason.message()));
  SetClosed(reason);
  FailAll(CodeOf(reason));
  if (ready_) return FailConnect(reason);
  SendMessage(GoodbyeMessage(reason));
  channel_->CloseAfterFlush(std::move(reason));
}

Status Remote::OnMessage(const net::Header& header, Bytes control, Channel::Targets* targets) {
  reading_ = nullptr;
  if (header.type == MessageType::kGoodbye) {
    KVT_ASSIGN_OR_RETURN(const auto* goodbye, ReadControl<wire::Goodbye>(control, "Goodbye"));
    const Status reason = GoodbyeReason(*goodbye);
    if (state_ == State::kHello) core_->counters.Count(reason);
    channel_->Close(reason);
    return OkStatus();
  }
  if (state_ == State::kHello) {
    if (header.type != MessageType::kHello) return Unexpected(header.type);
    return OnHello(control);
  }
  if (header.version != KVT_WIRE_VERSION)
    return Error(KVT_ERR_VERSION,
                 absl::StrCat("message.version is ", header.version, ", agreed was ", KVT_WIRE_VERSION));
  if (header.type != MessageType::kFrames && header.payload_bytes != 0)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message of type ", static_cast<int>(header.type), " has ",
                                               header.payload_bytes, " bytes of payload"));
  switch (header.type) {
    case MessageType::kHeartbeat:
      return OkStatus();
    case MessageType::kFrames:
      return OnFrames(control, header.payload_bytes, targets);
    case MessageType::kPushResults: {
      KVT_ASSIGN_OR_RETURN(const auto* results, ReadControl<wire::PushResults>(control, "PushResults"));
      const auto found = requests_.find(results->request());
      if (found != requests_.end()) return found->second->OnResults(this, *results);
      if (forgotten_.contains(results->request())) return OkStatus();
      break;
    }
    case MessageType::kEnd: {
      KVT_ASSIGN_OR_RETURN(const auto* end, ReadControl<wire::End>(control, "End"));
      const auto found = requests_.find(end->request());
      if (found != requests_.end()) return found->second->OnEnd(this, *end);
      if (forgotten_.contains(end->request())) return OkStatus();
      break;
    }
    case MessageType::kCancelled: {
      KVT_ASSIGN_OR_RETURN(const auto* cancelled, ReadControl<wire::Cancel>(control, "Cancelled"));
      if (forgotten_.erase(cancelled->request()) == 1) return OkStatus();
      break;
    }
    default:
      return Unexpected(header.type);
  }
  return Error(KVT_ERR_CORRUPT, absl::StrCat("message of type ", static_cast<int>(header.type),
                                             " answers a request that was not made"));
}

Status Remote::OnHello(Bytes control) {
  KVT_ASSIGN_OR_RETURN(const auto* hello, ReadControl<wire::Hello>(control, "Hello"));
  KVT_RETURN_IF_ERROR(CompareHello(core_->identity, *hello, &core_->counters));
  heartbeat_ = std::chrono::milliseconds(std::clamp<uint32_t>(hello->stall_ms(), 100, 600'000) / 4);
  peer_max_frame_bytes_ = hello->max_frame_bytes();
  core_->loop->Drop(std::exchange(handshake_, 0));
  state_ = State::kReady;
  std::exchange(ready_, nullptr)(OkStatus());
  return OkStatus();
}

Status Remote::OnFrames(Bytes control, uint64_t payload, Channel::Targets* targets) {
  KVT_ASSIGN_OR_RETURN(const auto* frames, ReadControl<wire::Frames>(control, "Frames"));
  if (frames->items() == nullptr || frames->items()->size() == 0 ||
      frames->items()->size() > kItemsPerMessage)
    return Error(KVT_ERR_CORRUPT,
                 absl::StrCat("message Frames: it has no items or more than ", kItemsPerMessage));
  if (!Aligned(*frames->items())) return Error(KVT_ERR_CORRUPT, "message Frames: its items are not aligned");
  uint64_t sum = 0;
  for (const wire::FrameItem* item : *frames->items()) {
    if (item->status() != KVT_OK) continue;
    if (item->length() < kFramePrefixBytes || item->length() > payload - sum)
      return Error(KVT_ERR_CORRUPT, absl::StrCat("message Frames: a length of ", item->length(),
                                                 " does not fit a payload of ", payload, " bytes"));
    sum += item->length();
  }
  if (sum != payload)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message Frames: lengths add up to ", sum,
                                               ", the payload has ", payload, " bytes"));
  const auto found = requests_.find(frames->request());
  if (found == requests_.end()) {
    if (forgotten_.contains(frames->request())) return OkStatus();
    return Error(KVT_ERR_CORRUPT,
                 absl::StrCat("message Frames answers request ", frames->request(), ", which was not made"));
  }
  reading_ = found->second;
  return reading_->OnFrames(this, *frames, targets);
}

Status Remote::OnTarget(size_t index) {
  if (reading_ != nullptr) reading_->OnTarget(this, index);
  return OkStatus();
}

void Remote::OnDrained() { Pump(); }

void Remote::StartOp(const std::shared_ptr<RemoteOp>& op) {
  const Status failed = CaughtIn([&] { TryStartOp(op); });
  if (failed.ok()) return;
  // How much of it is queued is unknown.
  Close(failed);
  Finish(op.get(), CodeOf(failed));
}

void Remote::TryStartOp(const std::shared_ptr<RemoteOp>& op) {
  op->started_ = true;
  if (op->operation_->cancelled()) return Finish(op.get(), KVT_ERR_CANCELLED);
  if (state_ != State::kReady || !channel_->open() || channel_->closing())
    return Finish(op.get(), KVT_ERR_PEER_DEAD);
  if (ops_.empty()) busy_since_ = core_->loop->now();
  ops_.emplace(op.get(), op);
  op->deadline_ = core_->loop->At(op->operation_->deadline().time(), [this, raw = op.get()] {
    raw->deadline_ = 0;
    // A peer that has been silent for long enough is stalled even if its stall and the deadline coincide.
    const bool silent = core_->loop->now() - std::max(channel_->received_at(), busy_since_) >= stall();
    Finish(raw, silent ? KVT_ERR_STALLED : KVT_ERR_TIMEOUT);
  });
  op->Start(this);
  if (!op->finished_) senders_.push_back(op.get());
  if (tick_ == 0) Tick();
  Pump();
  channel_->Flush();
}

void Remote::CancelOp(const std::shared_ptr<RemoteOp>& op) {
  // One that has not started finds out when it starts.
  if (op->started_ && !op->finished_) Finish(op.get(), KVT_ERR_CANCELLED);
}

void Remote::Finish(RemoteOp* op, kvt_status_t code) {
  if (op->finished_) return;
  op->finished_ = true;
  std::shared_ptr<RemoteOp> keep;
  if (const auto found = ops_.find(op); found != ops_.end()) {
    keep = std::move(found->second);
    ops_.erase(found);
  }
  core_->loop->Drop(std::exchange(op->deadline_, 0));
  std::erase(senders_, op);
  if (reading_ == op) {
    reading_ = nullptr;
    channel_->DropPayload();
  }
  const std::vector<uint64_t> requests = std::exchange(op->request_ids_, {});
  const Status failed = CaughtIn([&] {
    for (const uint64_t request : requests) DropRequest(op, request);
  });
  // Then nothing of the operation's is read or written any more, whatever was not dropped.
  if (!failed.ok()) Close(failed);
  {
    MutexLock lock(&mu_);
    pending_requests_ -= op->requests();
    pending_keys_ -= op->keys();
  }
  const kvt_completion_t completion = op->Settle(code);
  const std::shared_ptr<Operation> operation = std::move(op->operation_);
  core_->operations->Finish(*operation, completion);
}

void Remote::Part(const RemoteOp& op, kvt_completion_t completion) {
  core_->operations->Part(*op.operation_, completion);
}

uint64_t Remote::NewRequest(RemoteOp* op) {
  const uint64_t request = next_request_++;
  requests_.emplace(request, op);
  op->request_ids_.push_back(request);
  return request;
}

// Forgets a request. When its operation has ended without the answer, it is cancelled at the peer.
void Remote::DropRequest(RemoteOp* op, uint64_t request) {
  std::erase(op->request_ids_, request);
  requests_.erase(request);
  if (channel_ == nullptr || !channel_->open() || channel_->closing()) return;
  // Also where the peer has answered: one that lies does so before all is sent.
  channel_->TakeBack(request);
  if (!op->finished_ || !channel_->open()) return;
  forgotten_.emplace(request, true);
  SendMessage(CancelMessage(MessageType::kCancel, request));
  if (forgotten_.size() > kMaxForgotten) {
    core_->loop->Post([self = shared_from_this()] {
      self->Close(Error(KVT_ERR_PEER_DEAD, "the peer confirms no cancelled requests"));
    });
  }
  core_->loop->Post([self = shared_from_this()] { self->channel_->Flush(); });
}

void Remote::FailAll(kvt_status_t code) {
  while (!ops_.empty()) Finish(ops_.begin()->first, code);
}

// Lets operations that send fill the queue, in turn.
void Remote::Pump() {
  while (!senders_.empty() && channel_->open() && channel_->queued_bytes() < kQueueBytes) {
    RemoteOp* op = senders_.front();
    senders_.pop_front();
    if (op->Send(this)) senders_.push_back(op);
  }
}

void Remote::Tick() {
  tick_ = 0;
  if (ops_.empty() || state_ != State::kReady || !channel_->open() || channel_->closing()) return;
  const auto now = core_->loop->now();
  const auto stalled_at = std::max(channel_->received_at(), busy_since_) + stall();
  if (now >= stalled_at) {
    core_->runtime->Log(KVT_LOG_WARNING, absl::StrCat(place_.text, ": no byte for ", stall().count(),
                                                      " ms; operations end as stalled"));
    return FailAll(KVT_ERR_STALLED);
  }
  if (now >= channel_->sent_at() + heartbeat_) {
    // One that waits to be sent says as much as two.
    if (channel_->queued_bytes() == 0) SendMessage(HeartbeatMessage());
    channel_->Flush();
  }
  auto beat = channel_->sent_at() + heartbeat_;
  if (beat <= now) beat = now + heartbeat_;
  tick_ = core_->loop->At(std::min(stalled_at, beat), [this] { Tick(); });
}

}  // namespace kvt::transfer
