// threads_2: two threads that code half of the tokens each, as the workers of a cache code its blocks, over
// one thread that codes both halves.
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "bench/bench.h"
#include "bench/bench_transform_kv.h"

namespace kvt::bench {
namespace {

constexpr int kRounds = 7;

// Two threads' speed over one's.
Pair Measure(const std::function<void()>& first, const std::function<void()>& second) {
  return Interleave(
      kRounds,
      [&] {
        return Seconds([&] {
          std::thread other(second);
          first();
          other.join();
        });
      },
      [&] {
        return Seconds([&] {
          first();
          second();
        });
      });
}

std::vector<Bar> Threads() {
  TransformKv kv;
  const std::vector<uint8_t>& profile = CalibrateProfile(kv);
  kv.Fill(7);
  Bar bar{
      .name = "threads_2", .value = 1e9, .unit = "x one thread", .op = ">=", .bar = 1.8, .rounds = kRounds};
  const struct {
    const char* name;
    bool profile;
  } codecs[] = {{"transform", true}, {"dense", true}, {"kvtc", true}, {"kivi4", false}, {"lossless", false}};
  for (const auto& [name, has_profile] : codecs) {
    const std::vector<uint8_t> none;
    const std::vector<uint8_t>& own = has_profile ? profile : none;
    TransformCodec front(kv, name, own, 0, kTokens / 2), back(kv, name, own, kTokens / 2, kTokens / 2);
    const Pair encode = Measure([&] { front.Encode(); }, [&] { back.Encode(); });
    const Pair decode = Measure([&] { front.Decode(); }, [&] { back.Decode(); });
    for (const Pair& pair : {encode, decode}) {
      if (pair.peer_by_ours.median >= bar.value) continue;
      bar.value = pair.peer_by_ours.median;
      bar.spread = pair.peer_by_ours.spread;
    }
    char text[80];
    std::snprintf(text, sizeof text, "%s%s: encode %.2f, decode %.2f", bar.note.empty() ? "" : "; ", name,
                  encode.peer_by_ours.median, decode.peer_by_ours.median);
    bar.note += text;
  }
  return {bar};
}
KVT_BENCH(codec, Threads);

}  // namespace
}  // namespace kvt::bench
