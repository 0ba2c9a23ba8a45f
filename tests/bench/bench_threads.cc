// threads_2: two threads that code half of the tokens each, as the workers of a cache code its blocks, over
// one thread that codes both halves. memcpy of the same KV is measured the same way: what the memory allows.
//
// The threads are there before the clock starts, each on a processor of its own: where the system starts a
// thread, and when it moves it, says nothing of the codecs.
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "bench/bench.h"
#include "bench/bench_transform_kv.h"

namespace kvt::bench {
namespace {

constexpr int kRounds = 7;
constexpr double kLeastSeconds = 0.05;

// The processors that this thread may use; it gets them back at the end.
class Processors {
 public:
  Processors() {
    if (pthread_getaffinity_np(pthread_self(), sizeof all_, &all_) != 0) Fail("pthread_getaffinity_np");
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &all_)) cpus_.push_back(cpu);
  }
  ~Processors() { Set(all_); }
  Processors(const Processors&) = delete;
  Processors& operator=(const Processors&) = delete;

  size_t count() const { return cpus_.size(); }
  // Keeps the calling thread on one of the first two.
  void Keep(size_t number) const {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus_[number], &one);
    Set(one);
  }

 private:
  static void Set(const cpu_set_t& set) {
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) Fail("pthread_setaffinity_np");
  }
  cpu_set_t all_;
  std::vector<int> cpus_;
};

// Seconds of both on two threads at the same time.
double Together(const Processors& processors, const std::function<void()>& first,
                const std::function<void()>& second) {
  std::atomic<int> there{0};
  std::atomic<bool> done{false};
  std::thread other([&] {
    processors.Keep(1);
    ++there;
    while (there != 2) {
    }
    second();
    done = true;
  });
  while (there != 1) {
  }
  const double seconds = Seconds([&] {
    ++there;
    first();
    while (!done) {
    }
  });
  other.join();
  return seconds;
}

// Two threads' speed over one's, of halves that are done as often as makes a measurement long enough.
Sample Measure(const Processors& processors, const std::function<void()>& first_half,
               const std::function<void()>& second_half) {
  first_half();
  const int times = 1 + static_cast<int>(kLeastSeconds / Seconds(first_half));
  const auto repeated = [times](const std::function<void()>& body) {
    return [times, &body] {
      for (int i = 0; i < times; ++i) body();
    };
  };
  const auto first = repeated(first_half), second = repeated(second_half);
  const Pair pair = Interleave(
      kRounds, [&] { return Together(processors, first, second); },
      [&] {
        return Seconds([&] {
          first();
          second();
        });
      });
  return pair.peer_by_ours;
}

Sample MeasureCopy(const Processors& processors) {
  constexpr size_t kHalf = kKvBytes / 2;
  const std::vector<char> from(kKvBytes, 1);
  std::vector<char> to(kKvBytes);
  return Measure(
      processors, [&] { std::memcpy(to.data(), from.data(), kHalf); },
      [&] { std::memcpy(to.data() + kHalf, from.data() + kHalf, kHalf); });
}

std::vector<Bar> Threads() {
  TransformKv kv;
  const std::vector<uint8_t>& profile = CalibrateProfile(kv);
  kv.Fill(7);
  const Processors processors;
  if (processors.count() < 2)
    return {{.name = "threads_2",
             .unit = "x one thread",
             .op = ">=",
             .bar = 1.8,
             .note = "there is one processor"}};
  processors.Keep(0);
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
    const Sample encode = Measure(
        processors, [&] { front.Encode(); }, [&] { back.Encode(); });
    const Sample decode = Measure(
        processors, [&] { front.Decode(); }, [&] { back.Decode(); });
    for (const Sample& sample : {encode, decode}) {
      if (sample.median >= bar.value) continue;
      bar.value = sample.median;
      bar.spread = sample.spread;
    }
    char text[80];
    std::snprintf(text, sizeof text, "%s: encode %.2f, decode %.2f; ", name, encode.median, decode.median);
    bar.note += text;
  }
  char text[80];
  std::snprintf(text, sizeof text, "memcpy of the same KV: %.2f", MeasureCopy(processors).median);
  bar.note += text;
  return {bar};
}
KVT_BENCH(codec, Threads);

}  // namespace
}  // namespace kvt::bench
