// The asynchronous operations of a cache: what each does with a chunk of its items.
#include <algorithm>
#include <new>
#include <vector>

#include "cache/cache.h"

namespace kvt {
namespace {

Key KeyAt(absl::Span<const uint8_t> keys, size_t item) { return Key::From(&keys[item * KVT_KEY_BYTES]); }

}  // namespace

FrameSpec Cache::Blocks::SpecOf(size_t block, size_t count, const Key& key) const {
  FrameSpec of = spec;
  const uint64_t begin = block * uint64_t{block_tokens};
  const uint64_t end = begin + block_tokens, run = count * uint64_t{block_tokens};
  of.key = key;
  of.token_begin = spec.token_begin + begin;
  of.token_count = block_tokens;
  // Exempt tokens count from the ends of the whole run.
  of.exempt_first = static_cast<uint32_t>(std::clamp<uint64_t>(spec.exempt_first, begin, end) - begin);
  const uint64_t last_begin = run - std::min<uint64_t>(run, spec.exempt_last);
  of.exempt_last =
      static_cast<uint32_t>(end - std::clamp<uint64_t>(last_begin, begin + of.exempt_first, end));
  return of;
}

// Items that are staged one by one and committed together at the end of the chunk. What was staged is always
// committed: a frame on its way to the disk is either reported or never there.
class Cache::PutJob : public Job {
 public:
  PutJob(Cache* cache, absl::Span<const uint8_t> keys, kvt_status_t* results, Finish finish)
      : Job(cache->runtime_.get().get(), results, keys.size() / KVT_KEY_BYTES, std::move(finish)),
        cache_(cache),
        keys_(keys) {}

  // The frames one after another, with a length each.
  void SetFrames(const uint8_t* frames, absl::Span<const uint64_t> lengths) {
    frames_.reserve(lengths.size());
    for (const uint64_t length : lengths) {
      frames_.emplace_back(frames, length);
      frames += length;
    }
  }

 protected:
  virtual StatusOr<std::unique_ptr<StagedPut>> StageItem(size_t item, FrameScratch* scratch,
                                                         uint64_t* bytes) {
    *bytes = frames_[item].size();
    return cache_->StageFrame(KeyAt(keys_, item), frames_[item], scratch);
  }

  void Run(size_t begin, size_t end) override {
    std::vector<Item> staged;
    staged.reserve(end - begin);
    uint64_t staged_bytes = 0;
    FrameScratch scratch(cache_->runtime_.get());
    for (size_t item = begin; item < end; ++item) {
      Status status = Stop();
      uint64_t bytes = 0;
      if (status.ok()) {
        auto put = TryStage(item, &scratch, &bytes);
        if (put.ok()) {
          staged.push_back(Item{item, bytes, *std::move(put)});
          staged_bytes += bytes;
          if (staged_bytes < cache_->tier_->BatchBytes()) continue;
          CommitAll(&staged);
          staged_bytes = 0;
          continue;
        }
        status = put.status();
      }
      Report(item, status, 0);
    }
    CommitAll(&staged);
  }

  Cache* const cache_;
  const absl::Span<const uint8_t> keys_;

 private:
  struct Item {
    size_t item;
    uint64_t bytes;
    std::unique_ptr<StagedPut> put;
  };
  // Caught here, so that what is staged already is committed.
  StatusOr<std::unique_ptr<StagedPut>> TryStage(size_t item, FrameScratch* scratch, uint64_t* bytes) {
    try {
      return StageItem(item, scratch, bytes);
    } catch (const std::bad_alloc&) {
      return Error(KVT_ERR_OUT_OF_MEMORY, "out of memory");
    }
  }
  void CommitAll(std::vector<Item>* staged) {
    for (Item& item : *staged) Report(item.item, cache_->CommitStaged(std::move(item.put)), item.bytes);
    staged->clear();
  }

  std::vector<Bytes> frames_;
};

class Cache::StoreJob : public Cache::PutJob {
 public:
  StoreJob(Cache* cache, absl::Span<const uint8_t> keys, kvt_status_t* results, Finish finish, Blocks blocks)
      : PutJob(cache, keys, results, std::move(finish)), blocks_(std::move(blocks)) {}

 private:
  StatusOr<std::unique_ptr<StagedPut>> StageItem(size_t item, FrameScratch* scratch,
                                                 uint64_t* bytes) override {
    const FrameSpec spec = blocks_.SpecOf(item, keys_.size() / KVT_KEY_BYTES, KeyAt(keys_, item));
    return cache_->StageBlock(blocks_, spec, scratch, bytes);
  }

  const Blocks blocks_;
};

class Cache::LoadJob : public Job {
 public:
  LoadJob(Cache* cache, absl::Span<const uint8_t> keys, kvt_status_t* results, Finish finish, Blocks blocks)
      : Job(cache->runtime_.get().get(), results, keys.size() / KVT_KEY_BYTES, std::move(finish)),
        cache_(cache),
        keys_(keys),
        blocks_(std::move(blocks)) {}

 private:
  void Run(size_t begin, size_t end) override {
    FrameScratch scratch(cache_->runtime_.get());
    for (size_t item = begin; item < end; ++item) {
      Status status = Stop();
      uint64_t bytes = 0;
      if (status.ok()) {
        const FrameSpec spec = blocks_.SpecOf(item, keys_.size() / KVT_KEY_BYTES, KeyAt(keys_, item));
        status = cache_->LoadBlock(blocks_, spec, &scratch, &bytes);
      }
      Report(item, status, bytes);
    }
  }

  Cache* const cache_;
  const absl::Span<const uint8_t> keys_;
  const Blocks blocks_;
};

StatusOr<uint64_t> Cache::Submit(OperationKind kind, Deadline deadline, const std::shared_ptr<Job>& job) {
  KVT_RETURN_IF_ERROR(CheckOpen());
  KVT_ASSIGN_OR_RETURN(std::shared_ptr<Operation> operation,
                       operations_->Begin(kind, deadline, [weak = std::weak_ptr(job)] {
                         if (const auto cancelled = weak.lock()) cancelled->Cancel();
                       }));
  const uint64_t id = operation->id();
  job->Start(std::move(operation));
  return id;
}

Job::Finish Cache::Finisher() {
  return [this](const Operation& done, const kvt_completion_t& completion, const std::string& failure) {
    if (!failure.empty()) {
      MutexLock lock(&mu_);
      failures_[done.id()] = failure;
    }
    operations_->Finish(done, completion);
  };
}

StatusOr<uint64_t> Cache::SubmitPut(absl::Span<const uint8_t> keys, const uint8_t* frames,
                                    const uint64_t* lengths, kvt_status_t* results, Deadline deadline) {
  auto job = std::make_shared<PutJob>(this, keys, results, Finisher());
  job->SetFrames(frames, absl::MakeConstSpan(lengths, keys.size() / KVT_KEY_BYTES));
  return Submit(OperationKind::kPut, deadline, job);
}

StatusOr<uint64_t> Cache::SubmitStore(Blocks blocks, absl::Span<const uint8_t> keys, kvt_status_t* results,
                                      Deadline deadline) {
  return Submit(OperationKind::kStore, deadline,
                std::make_shared<StoreJob>(this, keys, results, Finisher(), std::move(blocks)));
}

StatusOr<uint64_t> Cache::SubmitLoad(Blocks blocks, absl::Span<const uint8_t> keys, kvt_status_t* results,
                                     Deadline deadline) {
  return Submit(OperationKind::kLoad, deadline,
                std::make_shared<LoadJob>(this, keys, results, Finisher(), std::move(blocks)));
}

}  // namespace kvt
