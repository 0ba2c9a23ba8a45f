#include "transfer/streams.h"

namespace kvt::transfer {

Stream::~Stream() = default;

Status Stream::Append(Bytes frame) {
  KVT_ASSIGN_OR_RETURN(const FrameSummary summary, InspectFrame(frame));
  if (summary.frame_bytes != frame.size())
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame_len is ", frame.size(), ", the frame has ",
                                               summary.frame_bytes, " bytes"));
  if (summary.model != core_->identity.model)
    return Error(KVT_ERR_MISMATCH, absl::StrCat("frame.model is ", Hex(summary.model), ", the node's is ",
                                                Hex(core_->identity.model)));
  if (summary.namespace_digest != core_->identity.namespace_digest)
    return Error(KVT_ERR_MISMATCH, absl::StrCat("frame.namespace_digest is ", Hex(summary.namespace_digest),
                                                ", the node's is ", Hex(core_->identity.namespace_digest)));
  KVT_ASSIGN_OR_RETURN(MemoryLease lease, MemoryLease::Take(core_->runtime, frame.size()));
  auto block = std::make_shared<Block>();
  block->lease = std::move(lease);
  block->bytes.assign(frame.begin(), frame.end());
  {
    MutexLock lock(&mu_);
    if (state_ != State::kOpen) return Error(KVT_ERR_CLOSED, "the stream is finished");
    parts_.push_back(std::move(block));
  }
  if (const auto streams = streams_.lock()) streams->Changed();
  return OkStatus();
}

Status Stream::Finish(bool ok) {
  {
    MutexLock lock(&mu_);
    if (state_ != State::kOpen) return Error(KVT_ERR_CLOSED, "the stream is finished already");
    state_ = ok ? State::kComplete : State::kAborted;
  }
  if (const auto streams = streams_.lock()) streams->Changed();
  return OkStatus();
}

void Stream::Forget() {
  const auto streams = streams_.lock();
  if (streams != nullptr) streams->Remove(this);
  {
    MutexLock lock(&mu_);
    if (state_ == State::kOpen) state_ = State::kAborted;
  }
  if (streams != nullptr) streams->Changed();
}

Stream::Look Stream::Part(size_t index) const {
  MutexLock lock(&mu_);
  Look look;
  look.state = state_;
  // An aborted stream gives nothing more.
  if (state_ == State::kAborted || index >= parts_.size()) return look;
  look.present = true;
  look.part = {Bytes(parts_[index]->bytes), parts_[index]};
  return look;
}

StatusOr<std::shared_ptr<Stream>> Streams::Open(const Key& key) {
  auto stream = std::make_shared<Stream>(core_, weak_from_this(), key);
  {
    MutexLock lock(&mu_);
    std::weak_ptr<Stream>& entry = streams_[key];
    if (!entry.expired())
      return Error(KVT_ERR_ALREADY_EXISTS, absl::StrCat("a stream of key ", key.ToString(), " exists"));
    entry = stream;
  }
  Changed();
  return stream;
}

std::shared_ptr<Stream> Streams::Find(const Key& key) const {
  MutexLock lock(&mu_);
  const auto found = streams_.find(key);
  return found == streams_.end() ? nullptr : found->second.lock();
}

void Streams::Remove(const Stream* stream) {
  MutexLock lock(&mu_);
  const auto found = streams_.find(stream->key());
  if (found == streams_.end()) return;
  const auto there = found->second.lock();
  if (there == nullptr || there.get() == stream) streams_.erase(found);
}

}  // namespace kvt::transfer
