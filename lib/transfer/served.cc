#include "transfer/served.h"

#include <algorithm>
#include <utility>

namespace kvt::transfer {
namespace {

using net::Channel;
using net::MessageType;

// Keys that one task fetches on a worker.
constexpr size_t kTaskItems = 16;
// Messages and cancels that may wait for a peer that does not read.
constexpr size_t kMaxWaiting = 65536;

}  // namespace

Served::Served(std::shared_ptr<Core> core, std::shared_ptr<Shelf> shelf, std::shared_ptr<Streams> streams,
               net::Fd fd, std::shared_ptr<net::TokenBucket> bucket)
    : core_(std::move(core)),
      shelf_(std::move(shelf)),
      streams_(std::move(streams)),
      channel_(
          core_->loop.get(), std::move(fd), this,
          {std::max(core_->identity.max_frame_bytes, kSharedPayload), std::move(bucket), core_->traffic}) {}

Status Served::Start(Status refused) {
  refused_ = std::move(refused);
  KVT_RETURN_IF_ERROR(channel_.Start(shared_from_this()));
  core_->counters.connections.fetch_add(1, std::memory_order_relaxed);
  handshake_ =
      core_->loop->At(core_->loop->now() + std::chrono::milliseconds(core_->identity.stall_ms), [this] {
        handshake_ = 0;
        channel_.Close(Error(KVT_ERR_STALLED, "the peer did not finish its handshake"));
      });
  return OkStatus();
}

void Served::OnClosed(Status reason) {
  core_->counters.connections.fetch_sub(1, std::memory_order_relaxed);
  core_->loop->Drop(std::exchange(handshake_, 0));
  core_->loop->Drop(std::exchange(tick_, 0));
  pulls_.clear();
  streams_pulled_.clear();
  arriving_.clear();
  puts_.clear();
  core_->runtime->Log(KVT_LOG_DEBUG, absl::StrCat("a peer's connection is closed: ", reason.message()));
}

void Served::OnBroken(Status reason) {
  core_->counters.Count(reason);
  core_->runtime->Log(KVT_LOG_WARNING, absl::StrCat("a peer's connection is refused: ", reason.message()));
  pulls_.clear();
  streams_pulled_.clear();
  channel_.Send(GoodbyeMessage(reason));
  channel_.CloseAfterFlush(std::move(reason));
}

bool Served::busy() const {
  const auto opened = [this](const auto& entry) {
    return entry.second.stream != nullptr || streams_->Find(entry.second.key) != nullptr;
  };
  return channel_.open() && (channel_.queued_bytes() != 0 || outstanding() != streams_pulled_.size() ||
                             std::any_of(streams_pulled_.begin(), streams_pulled_.end(), opened));
}

Status Served::OnMessage(const net::Header& header, Bytes control, Channel::Targets* targets) {
  arriving_.clear();
  if (!greeted_) {
    if (header.type == MessageType::kHello && header.payload_bytes == 0) return OnHello(control);
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message of type ", static_cast<int>(header.type),
                                               " came before the handshake"));
  }
  if (header.version != KVT_WIRE_VERSION)
    return Error(KVT_ERR_VERSION,
                 absl::StrCat("message.version is ", header.version, ", agreed was ", KVT_WIRE_VERSION));
  if (header.type != MessageType::kPush && header.payload_bytes != 0)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message of type ", static_cast<int>(header.type), " has ",
                                               header.payload_bytes, " bytes of payload"));
  if (channel_.queued_messages() + puts_.size() > kMaxWaiting)
    return Error(KVT_ERR_LIMIT,
                 absl::StrCat("more than ", kMaxWaiting, " answers wait for the peer to read"));
  if (tick_ == 0) Tick();
  switch (header.type) {
    case MessageType::kHeartbeat:
      return OkStatus();
    case MessageType::kPull:
      return OnPull(control);
    case MessageType::kPullStream:
      return OnPullStream(control);
    case MessageType::kPush:
      return OnPush(control, header.payload_bytes, targets);
    case MessageType::kCancel:
      return OnCancel(control);
    case MessageType::kGoodbye:
      channel_.Close(Error(KVT_ERR_PEER_DEAD, "the peer said goodbye"));
      return OkStatus();
    default:
      return Error(KVT_ERR_CORRUPT,
                   absl::StrCat("message of type ", static_cast<int>(header.type), " is not expected here"));
  }
}

Status Served::OnHello(Bytes control) {
  KVT_ASSIGN_OR_RETURN(const auto* hello, ReadControl<wire::Hello>(control, "Hello"));
  KVT_RETURN_IF_ERROR(refused_);
  KVT_RETURN_IF_ERROR(CompareHello(core_->identity, *hello, &core_->counters));
  peer_stall_ = std::chrono::milliseconds(std::clamp<uint32_t>(hello->stall_ms(), 100, 600'000));
  heartbeat_ = peer_stall_ / 4;
  peer_max_frame_bytes_ = hello->max_frame_bytes();
  core_->loop->Drop(std::exchange(handshake_, 0));
  greeted_ = true;
  net::Message answer;
  answer.type = MessageType::kHello;
  answer.control = HelloControl(core_->identity);
  channel_.Send(std::move(answer));
  return OkStatus();
}

Status Served::CheckRequest(uint64_t request) {
  if (request <= last_request_)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("request ", request, " does not follow ", last_request_));
  if (pulls_.size() + streams_pulled_.size() >= kMaxRequests)
    return Error(KVT_ERR_LIMIT, absl::StrCat("more than ", kMaxRequests, " requests are outstanding"));
  last_request_ = request;
  return OkStatus();
}

Status Served::OnPull(Bytes control) {
  KVT_ASSIGN_OR_RETURN(const auto* pull, ReadControl<wire::Pull>(control, "Pull"));
  KVT_RETURN_IF_ERROR(CheckRequest(pull->request()));
  Pulled pulled;
  KVT_ASSIGN_OR_RETURN(pulled.keys, ReadKeys(pull->keys(), "Pull"));
  if (pulled.keys.size() > kKeysPerMessage || pending_keys_ + pulled.keys.size() > kMaxKeys)
    return Error(KVT_ERR_LIMIT, absl::StrCat("message Pull: ", pulled.keys.size(), " keys beside ",
                                             pending_keys_, " outstanding; the most is ", kKeysPerMessage,
                                             " a message, ", kMaxKeys, " a connection"));
  KVT_ASSIGN_OR_RETURN(pulled.lease, MemoryLease::Take(core_->runtime, pulled.keys.size() * sizeof(Key)));
  pulled.request = pull->request();
  pulled.slot_bytes = pull->slot_bytes();
  pending_keys_ += pulled.keys.size();
  pulls_.push_back(std::move(pulled));
  Pump();
  return OkStatus();
}

Status Served::OnPullStream(Bytes control) {
  KVT_ASSIGN_OR_RETURN(const auto* pull, ReadControl<wire::PullStream>(control, "PullStream"));
  KVT_RETURN_IF_ERROR(CheckRequest(pull->request()));
  KVT_ASSIGN_OR_RETURN(const std::vector<Key> keys, ReadKeys(pull->key(), "PullStream"));
  if (keys.size() != 1)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message PullStream: ", keys.size(), " keys"));
  streams_pulled_[pull->request()].key = keys[0];
  Pump();
  return OkStatus();
}

Status Served::OnCancel(Bytes control) {
  KVT_ASSIGN_OR_RETURN(const auto* cancel, ReadControl<wire::Cancel>(control, "Cancel"));
  const uint64_t request = cancel->request();
  std::erase_if(pulls_, [&](const Pulled& pulled) {
    if (pulled.request != request) return false;
    pending_keys_ -= pulled.keys.size() - pulled.next;
    return true;
  });
  streams_pulled_.erase(request);
  channel_.TakeBack(request);
  Put marker;
  marker.request = request;
  marker.cancel = true;
  // Answers to pushes are in order: those that are under way go first.
  puts_.push_back(std::move(marker));
  StorePuts();
  Pump();
  return OkStatus();
}

void Served::OnDrained() { Pump(); }

void Served::OnStreams() {
  if (streams_pulled_.empty() || !channel_.open()) return;
  Guard([this] { Pump(); });
  channel_.Flush();
}

void Served::Pump() {
  while (channel_.open() && !channel_.closing() && channel_.queued_bytes() < kQueueBytes) {
    const bool streamed = PumpStreams();
    const bool pulled = PumpPull();
    if (!streamed && !pulled) return;
  }
}

// Queues the next part of each stream that has one. False when there was none.
bool Served::PumpStreams() {
  bool progress = false;
  for (auto entry = streams_pulled_.begin(); entry != streams_pulled_.end();) {
    auto& [request, pulled] = *entry;
    if (pulled.stream == nullptr) pulled.stream = streams_->Find(pulled.key);
    Stream::Look look;
    if (pulled.stream != nullptr) look = pulled.stream->Part(pulled.next);
    if (look.present && look.part.bytes.size() <= peer_max_frame_bytes_) {
      net::Message message = FramesMessage(
          request, {wire::FrameItem(look.part.bytes.size(), static_cast<uint32_t>(pulled.next++), KVT_OK)});
      message.payload.push_back(std::move(look.part));
      channel_.Send(std::move(message));
      core_->counters.frames_sent.fetch_add(1, std::memory_order_relaxed);
      progress = true;
    } else if (look.present || look.state != Stream::State::kOpen) {
      kvt_status_t status = look.state == Stream::State::kComplete ? KVT_OK : KVT_ERR_CANCELLED;
      if (look.present) status = KVT_ERR_LIMIT;
      if (status != KVT_OK) channel_.TakeBack(request);
      channel_.Send(EndMessage(request, status));
      entry = streams_pulled_.erase(entry);
      progress = true;
      continue;
    }
    ++entry;
  }
  return progress;
}

// Answers the next keys of the first pull, or has a worker fetch them. False when that has to wait.
bool Served::PumpPull() {
  if (pulls_.empty() || fetching_) return false;
  Pulled& pulled = pulls_.front();
  const std::shared_ptr<FrameStore> store = shelf_->store();
  const size_t left = pulled.keys.size() - pulled.next;
  Fetched fetched;
  if (store == nullptr) {
    fetched.assign(std::min(left, kItemsPerMessage), Error(KVT_ERR_UNAVAILABLE, "the node serves no cache"));
  } else if (!store->Blocks()) {
    uint64_t bytes = 0;
    while (fetched.size() < std::min(left, kItemsPerMessage) && bytes < kSharedPayload) {
      fetched.push_back(Caught([&] { return store->Get(pulled.keys[pulled.next + fetched.size()]); }));
      if (fetched.back().ok()) bytes += fetched.back()->bytes.size();
    }
  } else {
    fetching_ = true;
    const auto first = pulled.keys.begin() + static_cast<ptrdiff_t>(pulled.next);
    std::vector<Key> keys(first, first + static_cast<ptrdiff_t>(std::min(left, kTaskItems)));
    auto frames = std::make_shared<Fetched>();
    frames->reserve(keys.size());
    core_->Work([self = shared_from_this(), store, request = pulled.request, keys = std::move(keys), frames] {
      for (const Key& key : keys) frames->push_back(Caught([&] { return store->Get(key); }));
      self->core_->loop->Post([self, request, frames] {
        self->fetching_ = false;
        if (!self->channel_.open()) return;
        self->Guard([&] {
          // The first pull may be another one by now, if this one was cancelled.
          if (!self->pulls_.empty() && self->pulls_.front().request == request) self->Answer(*frames);
          self->Pump();
        });
        self->channel_.Flush();
      });
    });
    return false;
  }
  Answer(fetched);
  return true;
}

// Sends the answers to the next keys of the first pull, several small frames to a message.
void Served::Answer(const Fetched& fetched) {
  Pulled& pulled = pulls_.front();
  std::vector<wire::FrameItem> items;
  absl::InlinedVector<Pinned, 1> payload;
  uint64_t bytes = 0;
  const auto send = [&] {
    if (items.empty()) return;
    net::Message message = FramesMessage(pulled.request, items);
    message.payload = std::exchange(payload, {});
    channel_.Send(std::move(message));
    items.clear();
    bytes = 0;
  };
  for (const StatusOr<Pinned>& frame : fetched) {
    const auto index = static_cast<uint32_t>(pulled.next++);
    const uint64_t size = frame.ok() ? frame->bytes.size() : 0;
    kvt_status_t status = CodeOf(frame.status());
    if (size > pulled.slot_bytes) status = KVT_ERR_BUFFER_TOO_SMALL;
    const bool sent = status == KVT_OK;
    if (items.size() == kItemsPerMessage || (sent && bytes != 0 && bytes + size > kSharedPayload)) send();
    items.emplace_back(size, index, status);
    if (!sent) continue;
    payload.push_back(*frame);
    bytes += size;
    core_->counters.frames_sent.fetch_add(1, std::memory_order_relaxed);
  }
  send();
  pending_keys_ -= fetched.size();
  if (pulled.next == pulled.keys.size()) pulls_.pop_front();
}

void Served::Tick() {
  Guard([this] { TryTick(); });
}

void Served::TryTick() {
  tick_ = 0;
  if (!channel_.open() || channel_.closing()) return;
  const auto now = core_->loop->now();
  const auto silent = now - channel_.received_at();
  const bool owes = outstanding() != 0;
  // Memory waits for the rest of a push: how long is for this node to say, not for the peer.
  const std::chrono::milliseconds own_stall(core_->identity.stall_ms);
  const auto patience = 4 * (arriving_.empty() ? peer_stall_ : std::min(peer_stall_, own_stall));
  if (owes && !channel_.paused() && silent >= patience)
    return channel_.Close(
        Error(KVT_ERR_STALLED, absl::StrCat("the peer has sent nothing for ", patience.count(),
                                            " ms while requests were outstanding")));
  // Enough for a peer that pushes slowly: it sends heartbeats of its own while it waits for answers.
  if (!owes && !channel_.paused() && silent >= 2 * peer_stall_) return;
  if (now >= channel_.sent_at() + heartbeat_ && channel_.queued_bytes() == 0) {
    channel_.Send(HeartbeatMessage());
    channel_.Flush();
    if (!channel_.open()) return;
  }
  auto beat = channel_.sent_at() + heartbeat_;
  if (beat <= now) beat = now + heartbeat_;
  // A push may begin before the next beat, and a peer may ask for rare ones.
  tick_ = core_->loop->At(std::min(beat, now + own_stall), [this] { Tick(); });
}

}  // namespace kvt::transfer
