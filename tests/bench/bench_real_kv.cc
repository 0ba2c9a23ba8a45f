#include "bench/bench_real_kv.h"

#ifdef KVT_BENCH_MODEL

#include <fstream>
#include <sstream>
#include <string>

#include "bench/bench.h"

namespace kvt::bench {
namespace {

template <typename T>
T Take(engine::Result<T> result, const char* what) {
  if (!result.ok()) Fail(std::string(what) + ": " + result.error().message);
  return std::move(*result);
}

}  // namespace

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
  const engine::Geometry& geometry = engine_->geometry();
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.model_id = geometry.weights_sha256.data();
  options.model_id_len = geometry.weights_sha256.size();
  options.layers = static_cast<uint32_t>(geometry.kv.layers);
  options.kv_heads = static_cast<uint32_t>(geometry.kv.kv_heads);
  options.k_dim = static_cast<uint32_t>(geometry.kv.head_dim_k);
  options.v_dim = static_cast<uint32_t>(geometry.kv.head_dim_v);
  options.rope_style =
      geometry.rope.style == engine::RopeStyle::kInterleaved ? KVT_ROPE_INTERLEAVED : KVT_ROPE_HALF_SPLIT;
  options.rope_dims = static_cast<uint32_t>(geometry.rope.dims);
  options.rope_base = geometry.rope.base;
  Check(kvt_model_create(&options, &model_), "kvt_model_create");
}

const kvt_view_t* RealKv::View(bool source) {
  const engine::KvBlob& blob = blob_[source ? 0 : 1];
  bases_ = blob.Bases();
  kvt_view_init(&view_, sizeof view_);
  view_.element = KVT_ELEMENT_F16;
  view_.layer_end = static_cast<uint32_t>(blob.geometry().layers);
  view_.head_end = static_cast<uint32_t>(blob.geometry().kv_heads);
  view_.bases = bases_.data();
  view_.base_count = bases_.size();
  const engine::RowView rows[] = {blob.K(0), blob.V(0)};
  for (int stream = 0; stream < 2; ++stream) {
    view_.element_stride[stream] = rows[stream].element_stride;
    view_.head_stride[stream] = rows[stream].head_stride;
    view_.token_stride[stream] = rows[stream].token_stride;
  }
  view_.tokens = kTokens;
  return &view_;
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
