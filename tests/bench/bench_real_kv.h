// The KV that a real model makes of a text. Only where the engine and its model are there (KVT_BENCH_MODEL).
// Single-threaded.
#ifndef KVARTET_TESTS_BENCH_BENCH_REAL_KV_H_
#define KVARTET_TESTS_BENCH_BENCH_REAL_KV_H_

#ifdef KVT_BENCH_MODEL

#include <kvartet/kvartet.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "kvartet/library.h"

namespace kvt::bench {

// The KV of 1,536 tokens of the documents, memory for as much again, and views of both.
class RealKv {
 public:
  static constexpr int32_t kTokens = 1536;

  RealKv();
  RealKv(const RealKv&) = delete;
  RealKv& operator=(const RealKv&) = delete;

  kvt_model_t model() const { return model_.get(); }
  uint64_t bytes() const { return blob_[0].geometry().token_bytes() * kTokens; }
  const engine::KvBlob& rows() const { return blob_[0]; }
  bool Same() const {
    return std::equal(blob_[0].bytes().begin(), blob_[0].bytes().end(), blob_[1].bytes().begin());
  }
  const kvt_view_t* View(bool source) const { return views_[source ? 0 : 1]->get(); }

  // An empty session on one thread; 0: it captures nothing.
  std::unique_ptr<engine::Session> NewSession(int32_t capture_every) const;
  // Seconds of a prefill of the tokens into an empty session.
  double Prefill(engine::Session& session) const;

 private:
  std::unique_ptr<engine::Engine> engine_;
  std::vector<int32_t> tokens_;
  std::vector<engine::KvBlob> blob_;
  std::vector<std::unique_ptr<cli::BlobView>> views_;
  cli::Model model_;
};

}  // namespace kvt::bench

#endif  // KVT_BENCH_MODEL

#endif  // KVARTET_TESTS_BENCH_BENCH_REAL_KV_H_
