#include "cache/cache.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/url.h"
#include "cache/file_tier.h"
#include "cache/memory_tier.h"

namespace kvt {
namespace {

StatusOr<std::unique_ptr<Tier>> OpenTier(const std::shared_ptr<Runtime>& runtime, absl::string_view text) {
  KVT_ASSIGN_OR_RETURN(const Url url, Url::Parse(text));
  if (url.scheme != "mem" && url.scheme != "file") {
    return Error(KVT_ERR_UNSUPPORTED, absl::StrCat("url scheme \"", url.scheme,
                                                   ":\" is no place of a cache; known are mem: and file:"));
  }
  KVT_RETURN_IF_ERROR(url.CheckOptions({"capacity"}));
  KVT_ASSIGN_OR_RETURN(const uint64_t capacity, url.Size("capacity", 0));
  if (capacity == 0 && url.options.contains("capacity"))
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("url \"", text, "\": capacity is less than 1 B"));
  if (url.scheme == "file") return FileTier::Open(runtime, url.rest, capacity);
  if (!url.rest.empty())
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("url \"", text, "\": mem: takes no path"));
  return std::make_unique<MemoryTier>(runtime, capacity);
}

uint64_t Load(const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }
void Add(std::atomic<uint64_t>* counter, uint64_t count) {
  counter->fetch_add(count, std::memory_order_relaxed);
}

}  // namespace

StatusOr<std::shared_ptr<Cache>> Cache::Open(std::shared_ptr<Runtime> runtime, absl::string_view url) {
  KVT_ASSIGN_OR_RETURN(auto operations, Operations::Create(runtime->operation_times()));
  KVT_ASSIGN_OR_RETURN(auto tier, OpenTier(runtime, url));
  return std::shared_ptr<Cache>(new Cache(std::move(runtime), std::move(tier), std::move(operations)));
}

Cache::Cache(std::shared_ptr<Runtime> runtime, std::unique_ptr<Tier> tier,
             std::unique_ptr<Operations> operations)
    : runtime_(std::move(runtime)), tier_(std::move(tier)), operations_(std::move(operations)) {}

Cache::~Cache() { Shutdown(); }

void Cache::Shutdown() {
  shut_down_.store(true, std::memory_order_release);
  closed_.store(true, std::memory_order_release);
  operations_->CancelAll();
  tier_->Close();
}

Status Cache::Close(Deadline deadline) {
  closed_.store(true, std::memory_order_release);
  operations_->Close();
  KVT_RETURN_IF_ERROR(operations_->WaitIdle(deadline));
  return tier_->Flush();
}

Status Cache::CheckOpen() const {
  if (closed_.load(std::memory_order_acquire)) return Error(KVT_ERR_CLOSED, "the cache is closed");
  return OkStatus();
}

size_t Cache::Poll(absl::Span<kvt_completion_t> out) {
  const size_t count = operations_->Poll(out);
  MutexLock lock(&mu_);
  for (const kvt_completion_t& completion : out.first(count)) failures_.erase(completion.operation);
  return count;
}

Status Cache::Wait(uint64_t operation, Deadline deadline, kvt_completion_t* completion) {
  KVT_ASSIGN_OR_RETURN(const kvt_completion_t done, operations_->Wait(operation, deadline));
  if (completion != nullptr) *completion = done;
  std::string text = absl::StrCat("operation ", operation, " failed");
  {
    MutexLock lock(&mu_);
    auto failure = failures_.extract(operation);
    if (!failure.empty()) text = std::move(failure.mapped());
  }
  return done.status == KVT_OK ? OkStatus() : Error(done.status, text);
}

StatusOr<std::shared_ptr<FrameBuffer>> Cache::TakeBuffer(uint64_t bytes, FrameScratch* scratch) {
  for (;;) {
    auto buffer = scratch->Take(bytes);
    if (buffer.ok() || CodeOf(buffer.status()) != KVT_ERR_LIMIT || tier_->Shed(bytes) == 0) return buffer;
  }
}

StatusOr<std::unique_ptr<StagedPut>> Cache::StageFrame(const Key& key, Bytes frame, FrameScratch* scratch) {
  FrameRef ref{frame, nullptr};
  if (tier_->KeepsBuffers()) {
    // Checked after the copy: what the cache keeps is what was checked, whatever the caller does meanwhile.
    KVT_ASSIGN_OR_RETURN(std::shared_ptr<FrameBuffer> copy, TakeBuffer(frame.size(), scratch));
    std::copy(frame.begin(), frame.end(), copy->data());
    ref.bytes = Bytes(copy->data(), frame.size());
    ref.owner = std::move(copy);
  }
  uint64_t checksums = 0;
  const auto summary = VerifyFrame(ref.bytes, &checksums);
  Add(&checksums_, checksums);
  if (!summary.ok()) return summary.status();
  if (!(summary->key == key)) {
    return Error(KVT_ERR_MISMATCH, absl::StrCat("key: the frame carries ", summary->key.ToString(),
                                                ", put under ", key.ToString()));
  }
  {
    // Null: what is there is the same.
    const auto there = tier_->Front(key, scratch);
    if (there.ok() && SameForm(there->bytes, ref.bytes)) return std::unique_ptr<StagedPut>();
  }
  return tier_->Stage(key, ref);
}

StatusOr<std::unique_ptr<StagedPut>> Cache::StageBlock(const Blocks& blocks, const FrameSpec& spec,
                                                       FrameScratch* scratch, uint64_t* bytes) {
  {
    // What cannot be read is replaced too.
    const auto there = tier_->Front(spec.key, scratch);
    if (there.ok() && blocks.codec->Holds(there->bytes, blocks.view, spec))
      return std::unique_ptr<StagedPut>();
  }
  KVT_ASSIGN_OR_RETURN(const uint64_t bound, blocks.codec->Bound(blocks.view, spec));
  KVT_ASSIGN_OR_RETURN(std::shared_ptr<FrameBuffer> buffer, TakeBuffer(bound, scratch));
  KVT_ASSIGN_OR_RETURN(
      const CodecReport report,
      blocks.codec->Encode(blocks.view, spec, MutableBytes(buffer->data(), buffer->capacity())));
  *bytes = report.frame_bytes;
  return tier_->Stage(spec.key, FrameRef{Bytes(buffer->data(), report.frame_bytes), buffer});
}

Status Cache::CommitStaged(std::unique_ptr<StagedPut> put) {
  if (put != nullptr) KVT_RETURN_IF_ERROR(tier_->Commit(std::move(put)));
  Add(&puts_, 1);
  return OkStatus();
}

StatusOr<FrameRef> Cache::Find(const Key& key, FrameScratch* scratch) {
  auto frame = tier_->Get(key, scratch);
  if (frame.ok()) return frame;
  const kvt_status_t code = CodeOf(frame.status());
  if (code == KVT_ERR_NOT_FOUND) Add(&misses_, 1);
  if (code == KVT_ERR_CORRUPT) DropCorrupt(key, frame.status());
  return frame;
}

void Cache::DropCorrupt(const Key& key, const Status& why) {
  Add(&corrupt_, 1);
  const auto removed = tier_->Remove(absl::MakeConstSpan(&key, 1));
  runtime_->Log(KVT_LOG_WARNING, absl::StrCat("cache: frame ", key.ToString(),
                                              " failed a check and was dropped: ", why.message(),
                                              removed.ok() ? "" : "; its removal failed: ",
                                              removed.ok() ? "" : removed.status().message()));
}

Status Cache::LoadBlock(const Blocks& blocks, const FrameSpec& spec, FrameScratch* scratch, uint64_t* bytes) {
  KVT_ASSIGN_OR_RETURN(const FrameRef frame, Find(spec.key, scratch));
  const auto report = blocks.codec->Decode(frame.bytes, spec, blocks.view);
  if (!report.ok()) {
    if (CodeOf(report.status()) == KVT_ERR_CORRUPT) DropCorrupt(spec.key, report.status());
    return report.status();
  }
  Add(&checksums_, report->checksums);
  Add(&hits_, 1);
  *bytes = frame.bytes.size();
  return OkStatus();
}

Status Cache::Put(const Key& key, Bytes frame) {
  KVT_RETURN_IF_ERROR(CheckOpen());
  FrameScratch scratch(runtime_.get());
  KVT_ASSIGN_OR_RETURN(auto put, StageFrame(key, frame, &scratch));
  return CommitStaged(std::move(put));
}

StatusOr<FrameRef> Cache::Get(const Key& key) {
  KVT_RETURN_IF_ERROR(CheckOpen());
  FrameScratch scratch(runtime_.get());
  KVT_ASSIGN_OR_RETURN(FrameRef frame, Find(key, &scratch));
  uint64_t checksums = 0;
  auto summary = VerifyFrame(frame.bytes, &checksums);
  Add(&checksums_, checksums);
  Status status = summary.status();
  if (status.ok() && !(summary->key == key))
    status = Error(KVT_ERR_CORRUPT, absl::StrCat("the frame carries the key ", summary->key.ToString()));
  if (!status.ok()) {
    DropCorrupt(key, status);
    return status;
  }
  Add(&hits_, 1);
  return frame;
}

StatusOr<size_t> Cache::Match(absl::Span<const uint8_t> keys) const {
  KVT_RETURN_IF_ERROR(CheckOpen());
  size_t matched = 0;
  while ((matched + 1) * KVT_KEY_BYTES <= keys.size() &&
         tier_->Contains(Key::From(&keys[matched * KVT_KEY_BYTES]))) {
    ++matched;
  }
  return matched;
}

StatusOr<size_t> Cache::Remove(absl::Span<const uint8_t> keys) {
  KVT_RETURN_IF_ERROR(CheckOpen());
  std::vector<Key> list;
  list.reserve(keys.size() / KVT_KEY_BYTES);
  for (size_t at = 0; at + KVT_KEY_BYTES <= keys.size(); at += KVT_KEY_BYTES)
    list.push_back(Key::From(&keys[at]));
  KVT_ASSIGN_OR_RETURN(const uint64_t removed, tier_->Remove(list));
  Add(&removals_, removed);
  return removed;
}

kvt_cache_stats_t Cache::stats() const {
  const TierStats tier = tier_->stats();
  kvt_cache_stats_t stats = {};
  stats.struct_size = sizeof stats;
  stats.frames = tier.frames;
  stats.bytes = tier.bytes;
  stats.capacity_bytes = tier.capacity_bytes;
  stats.puts = Load(puts_);
  stats.hits = Load(hits_);
  stats.misses = Load(misses_);
  stats.evictions = tier.evictions;
  stats.removals = Load(removals_);
  stats.corrupt = Load(corrupt_);
  stats.torn = tier.torn;
  stats.checksums = Load(checksums_);
  return stats;
}

}  // namespace kvt
