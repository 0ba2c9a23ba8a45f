#include "kvartet/cache.h"

#include "base/boundary.h"
#include "base/options.h"
#include "cache/cache.h"

namespace {

constexpr size_t kMaxItems = size_t{1} << 24;

kvt::Status CheckItems(const void* keys, size_t count) {
  if (keys == nullptr && count != 0)
    return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("keys is NULL but count is ", count));
  if (count > kMaxItems)
    return kvt::Error(KVT_ERR_INVALID_ARGUMENT,
                      absl::StrCat("count is ", count, ", the most is ", kMaxItems));
  return kvt::OkStatus();
}

kvt::Status CheckSubmit(const uint8_t* keys, size_t count, const kvt_status_t* results,
                        const uint64_t* operation) {
  KVT_RETURN_IF_ERROR(CheckItems(keys, count));
  if (results == nullptr && count != 0) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "results is NULL");
  if (operation == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "operation is NULL");
  return kvt::OkStatus();
}

// Reads every key: call it once the count is known to fit the view.
kvt::Status CheckKeys(const uint8_t* keys, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (kvt::Key::From(keys + i * KVT_KEY_BYTES).IsNull())
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT,
                        absl::StrCat("key ", i, " is all zero, which names nothing"));
  }
  return kvt::OkStatus();
}

absl::Span<const uint8_t> Keys(const uint8_t* keys, size_t count) {
  return absl::MakeConstSpan(keys, count * KVT_KEY_BYTES);
}

kvt::StatusOr<kvt::Cache::Blocks> CheckBlocks(kvt_codec_t codec, const kvt_view_t* view,
                                              const kvt_frame_spec_t* spec, uint32_t block_tokens,
                                              size_t count) {
  KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Codec>(codec));
  KVT_ASSIGN_OR_RETURN(kvt::View checked, kvt::View::Check(found->model(), view));
  if (block_tokens == 0 || block_tokens % KVT_GRAIN_TOKENS != 0 || block_tokens > 65536) {
    return kvt::Error(KVT_ERR_INVALID_ARGUMENT,
                      absl::StrCat("block_tokens is ", block_tokens, ", allowed are multiples of ",
                                   KVT_GRAIN_TOKENS, " up to 65536"));
  }
  kvt_frame_spec_t whole = {};
  whole.struct_size = sizeof whole;
  KVT_RETURN_IF_ERROR(kvt::ReadStruct(spec, "kvt_frame_spec", &whole));
  const uint64_t tokens = count * uint64_t{block_tokens};
  if (whole.token_begin > checked.tokens() || tokens > checked.tokens() - whole.token_begin) {
    return kvt::Error(KVT_ERR_OUT_OF_RANGE,
                      absl::StrCat(count, " blocks of ", block_tokens, " tokens from token ",
                                   whole.token_begin, " on; the view has ", checked.tokens(), " tokens"));
  }
  kvt::Cache::Blocks blocks{std::move(found), std::move(checked), {}, block_tokens};
  if (count == 0) return blocks;
  const uint32_t exempt_first = whole.exempt_first, exempt_last = whole.exempt_last;
  whole.token_count = block_tokens;
  KVT_ASSIGN_OR_RETURN(blocks.spec, kvt::FrameSpec::Check(blocks.view, &whole));
  // Of the whole run, not of one block: each block's share is worked out when it is encoded.
  blocks.spec.exempt_first = exempt_first;
  blocks.spec.exempt_last = exempt_last;
  return blocks;
}

}  // namespace

extern "C" {

KVT_API kvt_status_t kvt_cache_open(kvt_runtime_t runtime, const char* url, size_t url_len,
                                    kvt_cache_t* cache) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(const absl::string_view place, kvt::ReadText("url", url, url_len));
    if (cache == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "cache is NULL");
    KVT_ASSIGN_OR_RETURN(auto host, kvt::Lookup<kvt::Runtime>(runtime));
    KVT_ASSIGN_OR_RETURN(auto opened, kvt::Cache::Open(std::move(host), place));
    *cache = kvt::NewHandle(std::move(opened));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_cache_close(kvt_cache_t cache, int64_t timeout_ms) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    KVT_ASSIGN_OR_RETURN(const kvt::Deadline deadline, kvt::Deadline::FromTimeout(timeout_ms));
    return found->Close(deadline);
  });
}

KVT_API void kvt_cache_destroy(kvt_cache_t cache) {
  kvt::VoidBoundary([&] {
    // Another thread may hold the object in a call; what the caller waits for does not hang on that.
    if (const auto found = kvt::Take<kvt::Cache>(cache)) found->Shutdown();
  });
}

KVT_API kvt_status_t kvt_cache_submit_put(kvt_cache_t cache, const uint8_t* keys, size_t count,
                                          const uint8_t* frames, const uint64_t* lengths,
                                          kvt_status_t* results, int64_t timeout_ms, uint64_t* operation) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    KVT_RETURN_IF_ERROR(CheckSubmit(keys, count, results, operation));
    KVT_RETURN_IF_ERROR(CheckKeys(keys, count));
    if (count != 0 && (frames == nullptr || lengths == nullptr))
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, frames == nullptr ? "frames is NULL" : "lengths is NULL");
    for (size_t i = 0; i < count; ++i) {
      if (lengths[i] == 0 || lengths[i] > KVT_FRAME_BYTES_MAX)
        return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("lengths[", i, "] is ", lengths[i],
                                                                 ", allowed are 1 to ", KVT_FRAME_BYTES_MAX));
    }
    KVT_ASSIGN_OR_RETURN(const kvt::Deadline deadline, kvt::Deadline::FromTimeout(timeout_ms));
    KVT_ASSIGN_OR_RETURN(*operation, found->SubmitPut(Keys(keys, count), frames, lengths, results, deadline));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_cache_submit_store(kvt_cache_t cache, kvt_codec_t codec, const kvt_view_t* view,
                                            const kvt_frame_spec_t* spec, uint32_t block_tokens,
                                            const uint8_t* keys, size_t count, kvt_status_t* results,
                                            int64_t timeout_ms, uint64_t* operation) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    KVT_RETURN_IF_ERROR(CheckSubmit(keys, count, results, operation));
    KVT_ASSIGN_OR_RETURN(auto blocks, CheckBlocks(codec, view, spec, block_tokens, count));
    KVT_RETURN_IF_ERROR(CheckKeys(keys, count));
    KVT_ASSIGN_OR_RETURN(const kvt::Deadline deadline, kvt::Deadline::FromTimeout(timeout_ms));
    KVT_ASSIGN_OR_RETURN(*operation,
                         found->SubmitStore(std::move(blocks), Keys(keys, count), results, deadline));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_cache_submit_load(kvt_cache_t cache, kvt_codec_t codec, const kvt_view_t* view,
                                           const kvt_frame_spec_t* spec, uint32_t block_tokens,
                                           const uint8_t* keys, size_t count, kvt_status_t* results,
                                           int64_t timeout_ms, uint64_t* operation) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    KVT_RETURN_IF_ERROR(CheckSubmit(keys, count, results, operation));
    KVT_ASSIGN_OR_RETURN(auto blocks, CheckBlocks(codec, view, spec, block_tokens, count));
    KVT_RETURN_IF_ERROR(CheckKeys(keys, count));
    KVT_ASSIGN_OR_RETURN(const kvt::Deadline deadline, kvt::Deadline::FromTimeout(timeout_ms));
    KVT_ASSIGN_OR_RETURN(*operation,
                         found->SubmitLoad(std::move(blocks), Keys(keys, count), results, deadline));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_cache_poll(kvt_cache_t cache, kvt_completion_t* completions, size_t cap,
                                    size_t* count) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    if (completions == nullptr && cap != 0)
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("completions is NULL but cap is ", cap));
    if (count == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "count is NULL");
    *count = found->Poll(absl::MakeSpan(completions, cap));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_cache_wait(kvt_cache_t cache, uint64_t operation, int64_t timeout_ms,
                                    kvt_completion_t* completion) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    KVT_ASSIGN_OR_RETURN(const kvt::Deadline deadline, kvt::Deadline::FromTimeout(timeout_ms));
    return found->Wait(operation, deadline, completion);
  });
}

KVT_API kvt_status_t kvt_cache_cancel(kvt_cache_t cache, uint64_t operation) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    return found->Cancel(operation);
  });
}

KVT_API kvt_status_t kvt_cache_event_fd(kvt_cache_t cache, int32_t* fd) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    if (fd == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "fd is NULL");
    *fd = found->event_fd();
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_cache_match(kvt_cache_t cache, const uint8_t* keys, size_t count, size_t* matched) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    KVT_RETURN_IF_ERROR(CheckItems(keys, count));
    if (matched == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "matched is NULL");
    KVT_ASSIGN_OR_RETURN(*matched, found->Match(Keys(keys, count)));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_cache_put(kvt_cache_t cache, const uint8_t key[KVT_KEY_BYTES], const uint8_t* frame,
                                   size_t frame_len) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    if (key == nullptr || frame == nullptr)
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, key == nullptr ? "key is NULL" : "frame is NULL");
    KVT_RETURN_IF_ERROR(CheckKeys(key, 1));
    if (frame_len == 0 || frame_len > KVT_FRAME_BYTES_MAX)
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT,
                        absl::StrCat("frame_len is ", frame_len, ", allowed are 1 to ", KVT_FRAME_BYTES_MAX));
    return found->Put(kvt::Key::From(key), kvt::Bytes(frame, frame_len));
  });
}

KVT_API kvt_status_t kvt_cache_get(kvt_cache_t cache, const uint8_t key[KVT_KEY_BYTES], uint8_t* buf,
                                   size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    if (key == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "key is NULL");
    KVT_ASSIGN_OR_RETURN(const kvt::FrameRef frame, found->Get(kvt::Key::From(key)));
    return kvt::CopyOut(frame.bytes.data(), frame.bytes.size(), buf, cap, needed);
  });
}

KVT_API kvt_status_t kvt_cache_remove(kvt_cache_t cache, const uint8_t* keys, size_t count, size_t* removed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    KVT_RETURN_IF_ERROR(CheckItems(keys, count));
    KVT_ASSIGN_OR_RETURN(const size_t gone, found->Remove(Keys(keys, count)));
    if (removed != nullptr) *removed = gone;
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_cache_stats(kvt_cache_t cache, kvt_cache_stats_t* stats) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Cache>(cache));
    return kvt::WriteStruct(found->stats(), "kvt_cache_stats", stats);
  });
}

}  // extern "C"
