#include "transfer/pull.h"

#include <algorithm>

namespace kvt::transfer {

void Tally::Decide(size_t i, kvt_status_t status, uint64_t length) {
  decided_[i] = true;
  --left_;
  results_.statuses[i] = status;
  if (results_.lengths != nullptr) results_.lengths[i] = length;
  if (status != KVT_OK) return;
  ++ok_;
  bytes_ += length;
}

kvt_completion_t Tally::Settle(kvt_status_t code) {
  kvt_completion_t completion = {};
  for (size_t i = 0; i < results_.count; ++i) {
    if (!decided_[i]) Decide(i, code, 0);
    if (completion.status == KVT_OK) completion.status = results_.statuses[i];
  }
  completion.items_ok = ok_;
  completion.items = results_.count;
  completion.bytes = bytes_;
  return completion;
}

void PullOp::Start(Remote* remote) {
  if (tally_.complete()) return remote->Finish(this, KVT_OK);
  chunks_.reserve(requests());
  for (size_t first = 0; first < keys_.size(); first += kKeysPerMessage) {
    const size_t count = std::min(kKeysPerMessage, keys_.size() - first);
    chunks_.push_back({remote->NewRequest(this), first, count, count});
    remote->SendMessage(PullMessage(chunks_.back().request,
                                    std::min<uint64_t>(stride_, remote->core().identity.max_frame_bytes),
                                    absl::MakeConstSpan(keys_).subspan(first, count)));
  }
}

PullOp::Chunk* PullOp::Find(uint64_t request) {
  return &*std::find_if(chunks_.begin(), chunks_.end(),
                        [request](const Chunk& chunk) { return chunk.request == request; });
}

void PullOp::Decide(Remote* remote, Chunk* chunk, size_t item, kvt_status_t status, uint64_t length) {
  tally_.Decide(item, status, length);
  if (--chunk->left == 0) remote->DropRequest(this, chunk->request);
}

Status PullOp::OnFrames(Remote* remote, const wire::Frames& frames, net::Channel::Targets* targets) {
  Chunk* chunk = Find(frames.request());
  arriving_.clear();
  current_ = chunk;
  // First all checks, so that nothing is decided by a message that breaks the protocol.
  for (const wire::FrameItem* item : *frames.items()) {
    if (item->index() >= chunk->count)
      return Error(KVT_ERR_CORRUPT, absl::StrCat("message Frames: index ", item->index(), " of ",
                                                 chunk->count, " keys asked for"));
    const size_t i = chunk->first + item->index();
    if (tally_.decided(i) ||
        std::any_of(arriving_.begin(), arriving_.end(), [i](const auto& entry) { return entry.first == i; }))
      return Error(KVT_ERR_CORRUPT,
                   absl::StrCat("message Frames: index ", item->index(), " is answered twice"));
    if (item->status() == KVT_OK && item->length() > stride_)
      return Error(KVT_ERR_CORRUPT, absl::StrCat("message Frames: a frame of ", item->length(),
                                                 " bytes for a slot of ", stride_, " bytes"));
    arriving_.emplace_back(i, item->length());
    if (item->status() == KVT_OK) targets->push_back(MutableBytes(base_ + i * stride_, item->length()));
  }
  size_t kept = 0;
  for (size_t n = 0; n < arriving_.size(); ++n) {
    const kvt_status_t status = ItemStatus((*frames.items())[static_cast<uint32_t>(n)]->status());
    if (status == KVT_OK) {
      arriving_[kept++] = arriving_[n];
    } else {
      Decide(remote, chunk, arriving_[n].first, status,
             status == KVT_ERR_BUFFER_TOO_SMALL ? arriving_[n].second : 0);
    }
  }
  arriving_.resize(kept);
  if (tally_.complete()) remote->Finish(this, KVT_OK);
  return OkStatus();
}

void PullOp::OnTarget(Remote* remote, size_t index) {
  const auto [i, length] = arriving_[index];
  const Status status = remote->core().CheckFrame(Bytes(base_ + i * stride_, length), &keys_[i]);
  if (status.ok()) {
    remote->core().counters.frames_received.fetch_add(1, std::memory_order_relaxed);
  } else {
    remote->core().runtime->Log(KVT_LOG_WARNING, status.message());
  }
  Decide(remote, current_, i, CodeOf(status), length);
  if (tally_.complete()) remote->Finish(this, KVT_OK);
}

Status PullOp::OnEnd(Remote* remote, const wire::End& end) {
  Chunk* chunk = Find(end.request());
  const kvt_status_t status = ItemStatus(end.status());
  if (status == KVT_OK)
    return Error(KVT_ERR_CORRUPT,
                 absl::StrCat("message End: a pull ended with ", chunk->left, " keys without an answer"));
  for (size_t i = chunk->first; chunk->left != 0; ++i) {
    if (!tally_.decided(i)) Decide(remote, chunk, i, status, 0);
  }
  if (tally_.complete()) remote->Finish(this, KVT_OK);
  return OkStatus();
}

}  // namespace kvt::transfer
