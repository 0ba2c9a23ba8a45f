#include "net/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/boundary.h"

namespace kvt::net {
namespace {

// Bytes read beyond a payload, to learn of the next message without a call of its own.
constexpr size_t kReadAhead = 512;
constexpr size_t kStaging = 4096;
constexpr size_t kScratch = 64 << 10;
constexpr int kIov = 64;
// Work on one connection before others get their turn.
constexpr size_t kTurnBytes = 8 << 20;
constexpr uint64_t kSendBytes = 1 << 20;
constexpr uint64_t kLowWater = 1 << 20;
constexpr auto kLinger = std::chrono::seconds(1);

}  // namespace

Channel::Channel(Loop* loop, Fd fd, Handler* handler, Options options)
    : loop_(loop),
      fd_(std::move(fd)),
      handler_(handler),
      options_(std::move(options)),
      received_at_(loop->now()),
      sent_at_(loop->now()),
      staging_(kStaging) {}

Channel::~Channel() = default;

Status Channel::Start(std::shared_ptr<void> owner) {
  watched_ = EPOLLIN;
  KVT_ASSIGN_OR_RETURN(watch_,
                       loop_->Watch(fd_.get(), watched_, [this](uint32_t events) { OnEvent(events); }));
  owner_ = std::move(owner);
  return OkStatus();
}

void Channel::OnEvent(uint32_t events) {
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    if (Status failed = CaughtIn([this] { Read(); }); !failed.ok()) return Close(std::move(failed));
  }
  if (open() && ((events & EPOLLOUT) || (queued_bytes_ != 0 && !want_write_ && pace_ == 0))) Flush();
  // Paused, but the peer is gone: level-triggered, so do not wait for the next round.
  if (open() && paused_ && (events & (EPOLLHUP | EPOLLERR)))
    Close(Error(KVT_ERR_PEER_DEAD, "the peer closed the connection"));
}

void Channel::UpdateWatch() {
  if (!open() || watch_ == 0) return;
  const uint32_t events = (paused_ ? 0u : uint32_t{EPOLLIN}) | (want_write_ ? uint32_t{EPOLLOUT} : 0u);
  if (events == watched_) return;
  watched_ = events;
  loop_->Change(watch_, events);
}

void Channel::PauseReading(bool paused) {
  if (!open() || closing_ || paused == paused_) return;
  paused_ = paused;
  UpdateWatch();
  // What was read before the pause is not announced again.
  if (!paused) Handle(Parse());
}

void Channel::Handle(const Status& status) {
  if (status.ok() || !open() || closing_) return;
  DropPayload();
  handler_->OnBroken(status);
}

// Adds the places of the payload that is still to come; `*whole` when all of it fits.
size_t Channel::FillTargets(iovec* iov, int* count, bool* whole) {
  size_t want = 0;
  *whole = false;
  size_t offset = target_offset_;
  for (size_t i = target_; i < targets_.size(); ++i, offset = 0) {
    if (*count == kIov - 1) return want;
    const size_t left = targets_[i].size() - offset;
    if (left == 0) continue;
    if (targets_[i].data() == nullptr) {
      // Dropped bytes all go to one place.
      if (scratch_ == nullptr) scratch_.reset(new uint8_t[kScratch]);
      const size_t part = std::min(left, kScratch);
      iov[(*count)++] = {scratch_.get(), part};
      want += part;
      if (part < left) return want;
      continue;
    }
    iov[(*count)++] = {targets_[i].data() + offset, left};
    want += left;
  }
  *whole = true;
  return want;
}

void Channel::Read() {
  size_t turn = 0;
  while (open() && !paused_ && turn < kTurnBytes) {
    iovec iov[kIov];
    int count = 0;
    bool whole = false;
    const size_t into_targets = FillTargets(iov, &count, &whole);
    size_t staged = whole ? staging_.size() - end_ : 0;
    if (!targets_.empty()) staged = std::min(staged, kReadAhead);
    if (staged != 0) iov[count++] = {staging_.data() + end_, staged};
    const ssize_t got = readv(fd_.get(), iov, count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      if (closing_) return Close(close_reason_);
      return Close(Error(KVT_ERR_PEER_DEAD,
                         got == 0 ? std::string("the peer closed the connection")
                                  : absl::StrCat("the connection is gone: ", std::strerror(errno))));
    }
    received_at_ = loop_->now();
    options_.traffic->bytes_received.fetch_add(static_cast<uint64_t>(got), std::memory_order_relaxed);
    turn += static_cast<size_t>(got);
    if (closing_) {
      targets_.clear();
      begin_ = end_ = 0;
      continue;
    }
    const size_t first = std::min(static_cast<size_t>(got), into_targets);
    Handle(Received(first, static_cast<size_t>(got) - first));
    if (static_cast<size_t>(got) < into_targets + staged) return;
  }
}

Status Channel::Received(size_t into_targets, size_t into_staging) {
  end_ += into_staging;
  if (into_targets != 0) KVT_RETURN_IF_ERROR(Advance(into_targets));
  return Parse();
}

// Marks bytes of the payload as arrived and reports targets that are full.
Status Channel::Advance(size_t bytes) {
  while (target_ < targets_.size()) {
    const size_t left = targets_[target_].size() - target_offset_;
    if (bytes < left) {
      target_offset_ += bytes;
      return OkStatus();
    }
    bytes -= left;
    const size_t index = target_++;
    target_offset_ = 0;
    KVT_RETURN_IF_ERROR(handler_->OnTarget(index));
    if (!open() || closing_) return OkStatus();
  }
  targets_.clear();
  target_ = 0;
  return OkStatus();
}

Status Channel::Parse() {
  bool more = true;
  while (more && open() && !closing_ && !paused_) {
    if (targets_.empty()) {
      KVT_RETURN_IF_ERROR(ParseHead(&more));
      continue;
    }
    const size_t have = end_ - begin_;
    if (have == 0) break;
    const MutableBytes& target = targets_[target_];
    const size_t part = std::min(have, target.size() - target_offset_);
    if (target.data() != nullptr && part != 0)
      std::memcpy(target.data() + target_offset_, staging_.data() + begin_, part);
    begin_ += part;
    KVT_RETURN_IF_ERROR(Advance(part));
  }
  if (begin_ != 0) {
    std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return OkStatus();
}

Status Channel::ParseHead(bool* more) {
  const size_t have = end_ - begin_;
  *more = false;
  if (have < kHeaderBytes) return OkStatus();
  KVT_ASSIGN_OR_RETURN(const Header header, DecodeHeader(Bytes(staging_.data() + begin_, kHeaderBytes),
                                                         options_.max_payload_bytes));
  const size_t head = kHeaderBytes + header.control_bytes;
  if (have < head) {
    if (staging_.size() < begin_ + head) staging_.resize(begin_ + head + kReadAhead);
    return OkStatus();
  }
  KVT_RETURN_IF_ERROR(CheckHead(header, Bytes(staging_.data() + begin_, head)));
  // FlatBuffers reads its fields where they lie, so they need their alignment.
  aligned_.resize(header.control_bytes / sizeof(uint64_t) + 1);
  std::memcpy(aligned_.data(), staging_.data() + begin_ + kHeaderBytes, header.control_bytes);
  begin_ += head;
  *more = true;
  Targets targets;
  KVT_RETURN_IF_ERROR(handler_->OnMessage(
      header, Bytes(reinterpret_cast<const uint8_t*>(aligned_.data()), header.control_bytes), &targets));
  if (header.payload_bytes == 0) return OkStatus();
  if (targets.empty()) targets.push_back(MutableBytes(nullptr, header.payload_bytes));
  targets_ = std::move(targets);
  target_ = target_offset_ = 0;
  return Advance(0);
}

void Channel::DropPayload() {
  for (size_t i = target_; i < targets_.size(); ++i) targets_[i] = MutableBytes(nullptr, targets_[i].size());
}

void Channel::Send(Message message) {
  if (!open() || closing_) return;
  Out out;
  out.head = EncodeHead(message);
  out.bytes = out.head.size();
  for (const Pinned& part : message.payload) out.bytes += part.bytes.size();
  out.payload = std::move(message.payload);
  out.tag = message.tag;
  queued_bytes_ += out.bytes;
  if (out.tag != 0) ++tagged_[out.tag];
  (message.urgent ? urgent_ : normal_).push_back(std::move(out));
}

void Channel::Refill() {
  while (sending_bytes_ < kSendBytes && (!urgent_.empty() || !normal_.empty())) {
    std::deque<Out>& from = urgent_.empty() ? normal_ : urgent_;
    sending_bytes_ += from.front().bytes;
    sending_.push_back(std::move(from.front()));
    from.pop_front();
  }
}

size_t Channel::FillSend(iovec* iov, int* count, uint64_t limit) const {
  size_t total = 0;
  for (const Out& out : sending_) {
    for (size_t part = out.part; part <= out.payload.size(); ++part) {
      if (*count == kIov || total >= limit) return total;
      const Bytes bytes = part == 0 ? AsBytes(out.head) : out.payload[part - 1].bytes;
      const size_t offset = part == out.part ? out.offset : 0;
      const size_t size = std::min<uint64_t>(bytes.size() - offset, limit - total);
      if (size == 0) continue;
      iov[(*count)++] = {const_cast<uint8_t*>(bytes.data() + offset), size};
      total += size;
    }
  }
  return total;
}

void Channel::Sent(size_t bytes) {
  queued_bytes_ -= bytes;
  sending_bytes_ -= bytes;
  while (!sending_.empty()) {
    Out& out = sending_.front();
    while (out.part <= out.payload.size()) {
      const size_t size = out.part == 0 ? out.head.size() : out.payload[out.part - 1].bytes.size();
      const size_t step = std::min(bytes, size - out.offset);
      out.offset += step;
      out.bytes -= step;
      bytes -= step;
      if (out.offset < size) return;
      out.offset = 0;
      ++out.part;
    }
    Untag(out.tag);
    sending_.pop_front();
  }
}

void Channel::Flush() {
  if (Status failed = CaughtIn([this] { FlushSome(); }); !failed.ok()) Close(std::move(failed));
}

void Channel::FlushSome() {
  size_t turn = 0;
  while (open()) {
    Refill();
    if (sending_.empty()) {
      want_write_ = false;
      UpdateWatch();
      if (closing_ && !shut_) {
        shut_ = true;
        shutdown(fd_.get(), SHUT_WR);
      }
      return;
    }
    uint64_t limit = kSendBytes;
    if (options_.bucket != nullptr && options_.bucket->limited()) {
      limit = std::min(limit, options_.bucket->Available(Loop::Clock::now(), sending_bytes_));
      if (limit == 0) {
        want_write_ = false;
        UpdateWatch();
        loop_->Drop(pace_);
        pace_ = loop_->At(options_.bucket->When(sending_bytes_), [this] {
          pace_ = 0;
          Flush();
        });
        return;
      }
    }
    if (turn >= kTurnBytes) {
      want_write_ = true;
      UpdateWatch();
      return;
    }
    iovec iov[kIov];
    int count = 0;
    FillSend(iov, &count, limit);
    msghdr message = {};
    message.msg_iov = iov;
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      want_write_ = true;
      UpdateWatch();
      return;
    }
    if (sent < 0) {
      if (closing_) return Close(close_reason_);
      return Close(Error(KVT_ERR_PEER_DEAD, absl::StrCat("the connection is gone: ", std::strerror(errno))));
    }
    if (options_.bucket != nullptr) options_.bucket->Spend(static_cast<uint64_t>(sent));
    options_.traffic->bytes_sent.fetch_add(static_cast<uint64_t>(sent), std::memory_order_relaxed);
    sent_at_ = loop_->now();
    turn += static_cast<size_t>(sent);
    Sent(static_cast<size_t>(sent));
    if (queued_bytes_ < kLowWater && !closing_) handler_->OnDrained();
  }
}

void Channel::Untag(uint64_t tag) {
  const auto found = tagged_.find(tag);
  if (found != tagged_.end() && --found->second == 0) tagged_.erase(found);
}

// Copies what is not pinned of a message that is half sent. False when there is no memory for it.
bool Channel::CopyRest(Out* out) noexcept {
  for (size_t i = out->part == 0 ? 0 : out->part - 1; i < out->payload.size(); ++i) {
    Pinned& part = out->payload[i];
    if (part.pin != nullptr) continue;
    try {
      auto copy = std::make_shared<std::string>(AsText(part.bytes));
      part = {AsBytes(*copy), copy};
    } catch (const std::exception&) {
      return false;
    }
  }
  return true;
}

void Channel::TakeBack(uint64_t tag) noexcept {
  // A peer may cancel what it never asked for as often as it likes.
  if (!tagged_.contains(tag)) return;
  bool copied = true;
  for (std::deque<Out>* queue : {&urgent_, &normal_, &sending_}) {
    std::erase_if(*queue, [&](Out& out) {
      if (out.tag != tag) return false;
      // The front of what is being sent.
      if (out.part != 0 || out.offset != 0) {
        copied = CopyRest(&out);
        return false;
      }
      Untag(tag);
      queued_bytes_ -= out.bytes;
      if (queue == &sending_) sending_bytes_ -= out.bytes;
      return true;
    });
  }
  if (!copied) Close(Error(KVT_ERR_OUT_OF_MEMORY, "no memory for the rest of a message that was taken back"));
}

void Channel::CloseAfterFlush(Status reason) {
  if (!open() || closing_) return;
  closing_ = true;
  close_reason_ = std::move(reason);
  paused_ = false;
  targets_.clear();
  begin_ = end_ = 0;
  linger_ = loop_->At(loop_->now() + kLinger, [this] {
    linger_ = 0;
    Close(close_reason_);
  });
  UpdateWatch();
  Flush();
}

void Channel::Close(Status reason) {
  if (!open()) return;
  loop_->Drop(std::exchange(linger_, 0));
  loop_->Drop(std::exchange(pace_, 0));
  loop_->Forget(std::exchange(watch_, 0));
  fd_.Reset();
  targets_.clear();
  urgent_.clear();
  normal_.clear();
  sending_.clear();
  tagged_.clear();
  queued_bytes_ = sending_bytes_ = 0;
  // Callers up the stack still use this object: it goes in a later round.
  loop_->Post([owner = std::move(owner_)] {});
  handler_->OnClosed(std::move(reason));
}

}  // namespace kvt::net
