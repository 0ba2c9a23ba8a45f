// importance_time: the pass for the importance of tokens, of the queries of every fourth one, over the
// engine's prefill of the same tokens, both on one thread.
#include <cstdio>

#include "bench/bench.h"
#include "bench/bench_real_kv.h"
#ifdef KVT_BENCH_MODEL
#include "kvartet/captured_attention.h"
#endif

namespace kvt::bench {
namespace {

#ifdef KVT_BENCH_MODEL

constexpr int kRounds = 3;
constexpr int32_t kEvery = 4;

// Seconds of the pass.
double Pass(const RealKv& kv, const engine::Captured& captured) {
  const cli::CapturedAttention attention(captured, 0, captured.rows(), kv.rows().positions());
  const kvt_view_t* view = kv.View(true);
  std::vector<int8_t> importance(RealKv::kTokens);
  size_t needed = 0;
  return Seconds([&] {
    Check(kvt_token_importance(kv.model(), view, attention.get(), nullptr, importance.data(),
                               importance.size(), &needed),
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
