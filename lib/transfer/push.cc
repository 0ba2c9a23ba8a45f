#include "transfer/push.h"

namespace kvt::transfer {

void PushOp::Start(Remote* remote) {
  if (tally_.complete()) return remote->Finish(this, KVT_OK);
  request_ = remote->NewRequest(this);
}

bool PushOp::Send(Remote* remote) {
  const size_t first = next_;
  const uint64_t longest = remote->peer_max_frame_bytes();
  net::Message message;
  uint64_t bytes = 0;
  while (next_ < keys_.size() && next_ - first < kItemsPerMessage) {
    const uint64_t length = lengths_[next_];
    if (length > longest) {
      if (next_ != first) break;
      // The peer would close the connection over it.
      next_byte_ += length;
      tally_.Decide(next_++, KVT_ERR_LIMIT, length);
      if (tally_.complete()) {
        remote->DropRequest(this, request_);
        remote->Finish(this, KVT_OK);
        return false;
      }
      return next_ < keys_.size();
    }
    if (bytes != 0 && bytes + length > kSharedPayload) break;
    message.payload.push_back({Bytes(next_byte_, length), nullptr});
    next_byte_ += length;
    bytes += length;
    ++next_;
  }
  if (next_ == first) return false;
  net::Message head = PushMessage(request_, static_cast<uint32_t>(first),
                                  absl::MakeConstSpan(keys_).subspan(first, next_ - first),
                                  absl::MakeConstSpan(lengths_).subspan(first, next_ - first));
  head.payload = std::move(message.payload);
  remote->SendMessage(std::move(head));
  remote->core().counters.frames_sent.fetch_add(next_ - first, std::memory_order_relaxed);
  return next_ < keys_.size();
}

Status PushOp::OnResults(Remote* remote, const wire::PushResults& results) {
  const size_t count = results.statuses() == nullptr ? 0 : results.statuses()->size();
  if (count == 0 || results.first() >= next_ || count > next_ - results.first())
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message PushResults: items ", results.first(), " to ",
                                               results.first() + count, " of ", next_, " sent"));
  // Before any is decided: what is answered is no longer lent, and not all of it has left this memory.
  if (remote->Sends(request_) && tally_.left() <= count)
    return Error(KVT_ERR_CORRUPT, "message PushResults: the push is answered before it was sent");
  for (size_t n = 0; n < count; ++n) {
    const size_t i = results.first() + n;
    if (tally_.decided(i))
      return Error(KVT_ERR_CORRUPT, absl::StrCat("message PushResults: item ", i, " is answered twice"));
    tally_.Decide(i, ItemStatus(results.statuses()->Get(static_cast<uint32_t>(n))), lengths_[i]);
  }
  if (!tally_.complete()) return OkStatus();
  remote->DropRequest(this, request_);
  remote->Finish(this, KVT_OK);
  return OkStatus();
}

Status PushOp::OnEnd(Remote* remote, const wire::End& end) {
  const kvt_status_t status = ItemStatus(end.status());
  if (status == KVT_OK) return Error(KVT_ERR_CORRUPT, "message End: a push ended without its results");
  remote->Finish(this, status);
  return OkStatus();
}

}  // namespace kvt::transfer
