// The KV of documents, computed by several sessions at the same time and handed out in order. Threads: one
// caller.
#ifndef KVARTET_TOOLS_KVARTET_PREFILL_AHEAD_H_
#define KVARTET_TOOLS_KVARTET_PREFILL_AHEAD_H_

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "kvartet/documents.h"

namespace kvt::cli {

struct PrefilledDocument {
  engine::KvBlob blob;
  engine::Captured captured;  // empty unless asked for
};

class PrefillAhead {
 public:
  // Begins with the document `first`. Engine and documents are borrowed. Each session has one thread, so that
  // the bits do not depend on `jobs`. capture_every: as in engine::SessionOptions.
  PrefillAhead(const engine::Engine& engine, std::span<const TextDocument> documents, size_t first,
               int32_t jobs, int32_t capture_every = 0);
  // Stops what is being computed.
  ~PrefillAhead();
  PrefillAhead(const PrefillAhead&) = delete;
  PrefillAhead& operator=(const PrefillAhead&) = delete;

  // Waits for the next document; the caller must not ask for more documents than there are. `show` is called
  // now and then with the tokens computed so far, those of later documents included. Throws Failure.
  PrefilledDocument Next(const std::function<void(size_t)>& show);

 private:
  // Begins the document `begun_` on the session that computed the document `jobs` before it.
  void Begin();

  const std::span<const TextDocument> documents_;
  std::vector<std::unique_ptr<engine::Session>> sessions_;
  std::atomic<bool> stop_ = false;
  std::atomic<size_t> tokens_ = 0;
  size_t begun_, next_;
  std::vector<std::future<PrefilledDocument>> results_;  // one a session
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_PREFILL_AHEAD_H_
