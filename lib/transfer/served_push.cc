// The part of Served that takes pushes.
#include <algorithm>
#include <new>

#include "transfer/served.h"

namespace kvt::transfer {
namespace {

// Frames that one task stores on a worker.
constexpr size_t kTaskPuts = 16;
// A peer of whom more than this waits for the store is not read from.
constexpr uint64_t kPutBytes = 64u << 20;

}  // namespace

Status Served::OnPush(Bytes control, uint64_t payload, net::Channel::Targets* targets) {
  KVT_ASSIGN_OR_RETURN(const auto* push, ReadControl<wire::Push>(control, "Push"));
  KVT_ASSIGN_OR_RETURN(const std::vector<Key> keys, ReadKeys(push->keys(), "Push"));
  const auto* lengths = push->lengths();
  if (lengths == nullptr || lengths->size() != keys.size() || keys.size() > kItemsPerMessage)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message Push: ", keys.size(), " keys, ",
                                               lengths == nullptr ? 0 : lengths->size(),
                                               " lengths; the most is ", kItemsPerMessage));
  if (!Aligned(*lengths)) return Error(KVT_ERR_CORRUPT, "message Push: its lengths are not aligned");
  uint64_t sum = 0;
  for (const uint64_t length : *lengths) {
    if (length == 0 || length > payload - sum)
      return Error(KVT_ERR_CORRUPT, absl::StrCat("message Push: a length of ", length,
                                                 " does not fit a payload of ", payload, " bytes"));
    sum += length;
  }
  if (sum != payload)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("message Push: lengths add up to ", sum, ", the payload has ",
                                               payload, " bytes"));
  const bool serves = shelf_->store() != nullptr;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const uint64_t length = lengths->Get(i);
    Put put;
    put.request = push->request();
    put.index = push->first() + i;
    put.key = keys[i];
    auto buffer = std::make_shared<Buffer>();
    const Status room =
        serves ? NewBuffer(length, buffer.get()) : Error(KVT_ERR_UNAVAILABLE, "the node serves no cache");
    if (room.ok()) put.buffer = std::move(buffer);
    put.status = CodeOf(room);
    targets->push_back(MutableBytes(room.ok() ? put.buffer->bytes.get() : nullptr, length));
    arriving_.push_back(std::move(put));
  }
  return OkStatus();
}

Status Served::NewBuffer(uint64_t size, Buffer* buffer) {
  if (size > core_->identity.max_frame_bytes)
    return Error(KVT_ERR_LIMIT,
                 absl::StrCat("a frame of ", size, " bytes; the most is ", core_->identity.max_frame_bytes));
  KVT_ASSIGN_OR_RETURN(buffer->lease, MemoryLease::Take(core_->runtime, size));
  // A peer chose the size: without memory for it this is one frame's failure.
  buffer->bytes.reset(new (std::nothrow) uint8_t[size]);
  if (buffer->bytes == nullptr)
    return Error(KVT_ERR_OUT_OF_MEMORY, absl::StrCat("no memory for a frame of ", size, " bytes"));
  buffer->size = size;
  return OkStatus();
}

Status Served::OnTarget(size_t index) {
  Put& put = arriving_[index];
  if (put.buffer != nullptr) {
    const Status status = core_->CheckFrame(Bytes(put.buffer->bytes.get(), put.buffer->size), &put.key);
    put.status = CodeOf(status);
    if (status.ok()) {
      core_->counters.frames_received.fetch_add(1, std::memory_order_relaxed);
      put_bytes_ += put.buffer->size;
    } else {
      core_->runtime->Log(KVT_LOG_WARNING, status.message());
      put.buffer = nullptr;
    }
  }
  puts_.push_back(std::move(put));
  if (index + 1 == arriving_.size()) {
    arriving_.clear();
    StorePuts();
  }
  return OkStatus();
}

// Stores what has arrived, in order, and reports it.
void Served::StorePuts() {
  while (!storing_ && !puts_.empty() && channel_.open()) {
    const size_t count = std::min(puts_.size(), kTaskPuts);
    const auto end = puts_.begin() + static_cast<ptrdiff_t>(count);
    auto batch = std::make_shared<std::vector<Put>>(std::make_move_iterator(puts_.begin()),
                                                    std::make_move_iterator(end));
    puts_.erase(puts_.begin(), end);
    const std::shared_ptr<FrameStore> store = shelf_->store();
    const auto put_all = [store, batch] {
      for (Put& put : *batch) {
        if (put.buffer == nullptr) continue;
        const Bytes bytes(put.buffer->bytes.get(), put.buffer->size);
        put.status = CodeOf(Caught([&] { return store->Put(put.key, {bytes, put.buffer}); }));
      }
    };
    if (store == nullptr || !store->Blocks()) {
      put_all();
      Report(*batch);
      continue;
    }
    storing_ = true;
    core_->Work([self = shared_from_this(), batch, put_all] {
      put_all();
      self->core_->loop->Post([self, batch] {
        self->storing_ = false;
        if (!self->channel_.open()) return;
        self->Guard([&] {
          self->Report(*batch);
          self->StorePuts();
          self->PauseIfFull();
        });
        self->channel_.Flush();
      });
    });
  }
  PauseIfFull();
}

// One message for each run of neighbours.
void Served::Report(const std::vector<Put>& puts) {
  for (size_t i = 0; i < puts.size();) {
    const Put& first = puts[i];
    if (first.cancel) {
      channel_.Send(CancelMessage(net::MessageType::kCancelled, first.request));
      ++i;
      continue;
    }
    std::vector<kvt_status_t> statuses;
    for (; i < puts.size() && !puts[i].cancel && puts[i].request == first.request &&
           puts[i].index == first.index + statuses.size();
         ++i) {
      statuses.push_back(puts[i].status);
      if (puts[i].buffer != nullptr) put_bytes_ -= puts[i].buffer->size;
    }
    channel_.Send(PushResultsMessage(first.request, first.index, statuses));
  }
}

void Served::PauseIfFull() {
  if (channel_.open()) channel_.PauseReading(put_bytes_ >= kPutBytes);
}

}  // namespace kvt::transfer
