#include "bench/bench_real_kv.h"

#ifdef KVT_BENCH_MODEL

#include <fstream>
#include <sstream>
#include <string>

#include "bench/bench.h"

namespace kvt::bench {

using cli::Take;

RealKv::RealKv() : engine_(Take(engine::Engine::Open(KVT_BENCH_MODEL), "engine")) {
  std::stringstream text;
  for (const char* name : {"concepts.md", "guide.md", "location.md", "verification.md"})
    text << std::ifstream(std::string(KVT_BENCH_DOCS "/") + name).rdbuf();
  tokens_ = Take(engine_->Tokenize(text.str(), true, false), "tokens");
  if (tokens_.size() < kTokens) Fail("the text is too short");
  tokens_.resize(kTokens);
  const auto session = NewSession(0);
  Prefill(*session);
  blob_.push_back(Take(session->Export(0, kTokens), "export"));
  blob_.push_back(Take(session->Reserve(0, kTokens), "reserve"));
  for (const engine::KvBlob& blob : blob_) views_.push_back(std::make_unique<cli::BlobView>(blob));
  model_ = cli::MakeModel(engine_->geometry());
}

std::unique_ptr<engine::Session> RealKv::NewSession(int32_t capture_every) const {
  engine::SessionOptions options;
  options.capture_every = capture_every;
  return Take(engine_->NewSession(options), "session");
}

double RealKv::Prefill(engine::Session& session) const {
  return Seconds([&] { Take(session.Prefill(tokens_), "prefill"); });
}

}  // namespace kvt::bench

#endif  // KVT_BENCH_MODEL
