#include "transfer/pull_stream.h"

namespace kvt::transfer {
namespace {

// Parts begin at multiples of it, as segments do inside a frame.
constexpr uint64_t kAlign = 64;

}  // namespace

void PullStreamOp::Start(Remote* remote) {
  request_ = remote->NewRequest(this);
  remote->SendMessage(PullStreamMessage(request_, key_));
}

Status PullStreamOp::OnFrames(Remote* remote, const wire::Frames& frames, net::Channel::Targets* targets) {
  arriving_.clear();
  for (const wire::FrameItem* item : *frames.items()) {
    if (item->index() != next_index_ || item->status() != KVT_OK)
      return Error(KVT_ERR_CORRUPT, absl::StrCat("message Frames: part ", item->index(), " of status ",
                                                 item->status(), " when part ", next_index_, " is due"));
    if (next_index_ >= part_cap_ || next_offset_ > cap_ || item->length() > cap_ - next_offset_) {
      // What came with it before it is not reported: the operation has ended.
      targets->clear();
      remote->Finish(this, KVT_ERR_BUFFER_TOO_SMALL);
      return OkStatus();
    }
    ++next_index_;
    arriving_.push_back({next_offset_, item->length()});
    targets->push_back(MutableBytes(base_ + next_offset_, item->length()));
    next_offset_ = (next_offset_ + item->length() + kAlign - 1) / kAlign * kAlign;
  }
  return OkStatus();
}

void PullStreamOp::OnTarget(Remote* remote, size_t index) {
  const Place place = arriving_[index];
  // A part may be of any run of the producer's, so its key is for the decoder to check.
  const Status status = remote->core().CheckFrame(Bytes(base_ + place.offset, place.length), nullptr);
  if (!status.ok()) {
    remote->core().runtime->Log(KVT_LOG_WARNING, status.message());
    return remote->Finish(this, CodeOf(status));
  }
  remote->core().counters.frames_received.fetch_add(1, std::memory_order_relaxed);
  offsets_[parts_] = place.offset;
  lengths_[parts_] = place.length;
  ++parts_;
  bytes_ += place.length;
  kvt_completion_t part = {};
  part.items_ok = parts_;
  part.bytes = bytes_;
  remote->Part(*this, part);
}

Status PullStreamOp::OnEnd(Remote* remote, const wire::End& end) {
  remote->DropRequest(this, request_);
  const kvt_status_t status = ItemStatus(end.status());
  complete_ = status == KVT_OK;
  remote->Finish(this, status);
  return OkStatus();
}

kvt_completion_t PullStreamOp::Settle(kvt_status_t code) {
  kvt_completion_t completion = {};
  completion.status = code;
  completion.items_ok = parts_;
  completion.items = complete_ ? parts_ : 0;
  completion.bytes = bytes_;
  return completion;
}

}  // namespace kvt::transfer
