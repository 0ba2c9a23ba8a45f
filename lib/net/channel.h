// Channel: one connection as a sequence of messages, with payloads read straight into and written straight
// from memory that others own.
//
// Belongs to the loop's thread. A channel never blocks; what cannot be sent yet is queued, and who sends
// keeps the queue short by queued_bytes() and OnDrained. What is thrown while it reads or sends, by a handler
// too, closes it.
#ifndef KVARTET_LIB_NET_CHANNEL_H_
#define KVARTET_LIB_NET_CHANNEL_H_

#include <sys/uio.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "net/loop.h"
#include "net/message.h"
#include "net/token_bucket.h"

namespace kvt::net {

struct Traffic {
  std::atomic<uint64_t> bytes_sent{0}, bytes_received{0};
};

class Channel {
 public:
  // Where parts of a payload go; a null data() drops that part.
  using Targets = std::vector<MutableBytes>;

  class Handler {
   public:
    virtual ~Handler() = default;
    // A message's head is whole and its checksum holds. Sets `targets` to cover payload_bytes exactly, or
    // leaves it empty to drop the payload. An error ends the connection through OnBroken.
    virtual Status OnMessage(const Header& header, Bytes control, Targets* targets) = 0;
    // Target `index` of the current payload is filled (or dropped).
    virtual Status OnTarget(size_t index) = 0;
    // The queue has room again.
    virtual void OnDrained() = 0;
    // The peer broke the protocol; the handler says so to the peer if it likes, and closes the channel.
    virtual void OnBroken(Status reason) = 0;
    // The channel is closed; called once.
    virtual void OnClosed(Status reason) = 0;
  };

  struct Options {
    uint64_t max_payload_bytes = 0;
    std::shared_ptr<TokenBucket> bucket;  // shared by those that share a limit; may be null
    std::shared_ptr<Traffic> traffic;
  };

  Channel(Loop* loop, Fd fd, Handler* handler, Options options);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Begins to read. `owner` (of handler and channel) is kept until the channel is closed.
  Status Start(std::shared_ptr<void> owner);

  // Queues a message; Flush sends what the socket takes.
  void Send(Message message);
  void Flush();
  uint64_t queued_bytes() const { return queued_bytes_; }
  size_t queued_messages() const { return urgent_.size() + normal_.size() + sending_.size(); }

  // Whether messages of `tag` are not sent to their end.
  bool Holds(uint64_t tag) const { return tagged_.contains(tag); }
  // Takes back queued messages of `tag`. The message that is half sent goes on, from a copy of what is not
  // pinned; without memory for the copy the channel is closed. After the call no memory of theirs that is not
  // pinned is read.
  void TakeBack(uint64_t tag) noexcept;
  // Drops what is still to come of the payload that is being read. After the call its targets are not
  // written.
  void DropPayload();
  bool reading_payload() const { return !targets_.empty(); }

  void PauseReading(bool paused);
  bool paused() const { return paused_; }

  // Sends what is queued, then closes; reads and drops meanwhile. Gives up after a second.
  void CloseAfterFlush(Status reason);
  void Close(Status reason);
  bool open() const { return fd_.valid(); }
  bool closing() const { return closing_; }

  Loop::Time received_at() const { return received_at_; }
  Loop::Time sent_at() const { return sent_at_; }

 private:
  struct Out {
    std::string head;
    absl::InlinedVector<Pinned, 1> payload;
    uint64_t tag = 0;
    size_t bytes = 0;  // still to be sent
    size_t part = 0;   // 0 is the head, i + 1 payload i
    size_t offset = 0;
  };

  void OnEvent(uint32_t events);
  void FlushSome();
  void Read();
  void Handle(const Status& status);
  size_t FillTargets(iovec* iov, int* count, bool* whole);
  Status Received(size_t into_targets, size_t into_staging);
  Status Advance(size_t bytes);
  Status Parse();
  Status ParseHead(bool* more);
  void Refill();
  void Untag(uint64_t tag);
  static bool CopyRest(Out* out) noexcept;
  size_t FillSend(iovec* iov, int* count, uint64_t limit) const;
  void Sent(size_t bytes);
  void UpdateWatch();

  Loop* const loop_;
  Fd fd_;
  Handler* const handler_;
  const Options options_;
  std::shared_ptr<void> owner_;
  Loop::WatchId watch_ = 0;
  uint32_t watched_ = 0;
  bool paused_ = false, closing_ = false, want_write_ = false, shut_ = false;
  Status close_reason_;
  Loop::TimerId linger_ = 0, pace_ = 0;
  Loop::Time received_at_, sent_at_;

  // Reading. staging_ holds [begin_, end_) of what is not yet understood.
  std::vector<uint8_t> staging_;
  size_t begin_ = 0, end_ = 0;
  Targets targets_;
  size_t target_ = 0, target_offset_ = 0;
  std::vector<uint64_t> aligned_;
  std::unique_ptr<uint8_t[]> scratch_;

  // Writing. sending_ is in the order of the wire; its front may be half sent.
  std::deque<Out> urgent_, normal_, sending_;
  uint64_t sending_bytes_ = 0, queued_bytes_ = 0;
  absl::flat_hash_map<uint64_t, size_t> tagged_;  // how many of the queued messages have a tag
};

}  // namespace kvt::net

#endif  // KVARTET_LIB_NET_CHANNEL_H_
