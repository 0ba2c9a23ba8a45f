// importance_time: the pass for the importance of tokens, of the queries of every fourth one, over the
// engine's prefill of the same tokens, both on one thread.
#include <cstdio>

#include "bench/bench.h"
#include "bench/bench_real_kv.h"

namespace kvt::bench {
namespace {

#ifdef KVT_BENCH_MODEL

constexpr int kRounds = 3;
constexpr int32_t kEvery = 4;

// Seconds of the pass.
double Pass(RealKv& kv, const engine::Captured& captured) {
  const std::vector<uint32_t> tokens(captured.positions.begin(), captured.positions.end());
  const auto row_bytes = static_cast<int64_t>(captured.dim * sizeof(float));
  kvt_attention_t attention;
  kvt_attention_init(&attention, sizeof attention);
  attention.kind = KVT_ATTENTION_QUERIES;
  attention.layer_end = static_cast<uint32_t>(captured.layers);
  attention.heads = static_cast<uint32_t>(captured.heads);
  attention.rows = static_cast<uint32_t>(captured.rows());
  attention.base = captured.queries.data();
  attention.row_stride = row_bytes;
  attention.head_stride = row_bytes * static_cast<int64_t>(captured.rows());
  attention.layer_stride = attention.head_stride * static_cast<int64_t>(captured.heads);
  attention.row_tokens = tokens.data();
  const kvt_view_t* view = kv.View(true);
  std::vector<int8_t> importance(RealKv::kTokens);
  size_t needed = 0;
  return Seconds([&] {
    Check(kvt_token_importance(kv.model(), view, &attention, nullptr, importance.data(), importance.size(),
                               &needed),
          "kvt_token_importance");
  });
}

std::vector<Bar> Importance() {
  RealKv kv;
  const auto capturing = kv.NewSession(kEvery), session = kv.NewSession(0);
  const double with_capture = kv.Prefill(*capturing);
  const engine::Captured captured = capturing->TakeCaptured();
  const Pair pair = Interleave(
      kRounds, [&] { return Pass(kv, captured); },
      [&] {
        if (!session->Truncate(0).ok()) Fail("truncate");
        return kv.Prefill(*session);
      });
  Bar bar{.name = "importance_time",
          .value = 1 / pair.peer_by_ours.median,
          .unit = "x prefill",
          .op = "<=",
          .bar = 0.1,
          .peer = Peer{"prefill (s)", pair.peer.median},
          .rounds = kRounds,
          .spread = pair.peer_by_ours.spread};
  char text[160];
  std::snprintf(text, sizeof text,
                "%.3f s for %d tokens, queries of every %dth; a prefill that also gives the queries: %.3f s",
                pair.ours.median, RealKv::kTokens, kEvery, with_capture);
  bar.note = text;
  return {bar};
}

#else

std::vector<Bar> Importance() { Fail("area codec needs the engine and its model: ./bootstrap deps"); }

#endif
KVT_BENCH(codec, Importance);

}  // namespace
}  // namespace kvt::bench
