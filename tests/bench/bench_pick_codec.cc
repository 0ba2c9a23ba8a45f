// pick_codec: the time of transfers whose codec the planner picks, over that of an oracle that knows before
// each transfer how long it takes with every rung. Links have 0.05 to 100 Gbit/s.
//
// The codecs are real, the link is arithmetic. Every rung encodes and decodes the same KV kRounds times, all
// rungs in turn, by one thread and by two that code half of the tokens each; processor times count, of two
// threads the longer one. A simulated transfer draws one round for all rungs, and takes with each of them
// what was measured then and bytes / bandwidth; segments overlap as planner.h has it. None is rows as they
// are, or raw's frames with what they take. The planner is told what the round before these took with one
// thread, as often as there are threads, and observes the transfers. It serves all bandwidths in turn, first
// for kLearn transfers each that are not judged.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "bench/bench.h"
#include "bench/bench_transform_kv.h"

namespace kvt::bench {
namespace {

constexpr int kRounds = 9, kReplays = 9;
constexpr int kLearn = 10, kJudge = 100;
constexpr uint32_t kThreads = 2;

struct RungName {
  const char* codec;
  uint32_t ratio;  // 0: without a profile
  uint32_t quality_class;
};
constexpr RungName kRungs[] = {{"lossless", 0, 0},   {"int8", 0, 1},   {"kivi4", 0, 2},
                               {"transform", 16, 3}, {"dense", 20, 3}, {"raw", 0, 0}};
constexpr size_t kNone = std::size(kRungs) - 1;

struct CodecTimes {
  double encode = 0, decode = 0;  // seconds
};

struct MeasuredRung {
  double ratio = 0;
  CodecTimes told;                 // with one thread
  std::vector<CodecTimes> rounds;  // with the threads in question
};
using Ladder = std::vector<MeasuredRung>;  // as kRungs

// Processor time that this thread has for `body`: what else runs on the machine does not count.
template <typename Body>
double ThreadSeconds(const Body& body) {
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  body();
  return now() - begin;
}

// A codec of two halves of the tokens.
class HalvesCodec {
 public:
  HalvesCodec(const TransformKv& kv, const RungName& rung, const std::vector<uint8_t>& profile)
      : front_(kv, rung.codec, profile, 0, kTokens / 2, rung.ratio),
        back_(kv, rung.codec, profile, kTokens / 2, kTokens / 2, rung.ratio) {}

  // One half after the other, or both at once.
  CodecTimes Measure(uint32_t threads, const TransformKv& decoded) {
    const double encode = Run(threads, [](TransformCodec& half) { half.Encode(); });
    return {encode, Run(threads, [&](TransformCodec& half) { half.Decode(decoded.view()); })};
  }
  double ratio() const {
    return static_cast<double>(kKvBytes) / static_cast<double>(front_.frame_bytes() + back_.frame_bytes());
  }

 private:
  template <typename Step>
  double Run(uint32_t threads, const Step& step) {
    double front = 0, back = 0;
    if (threads == 1) {
      front = ThreadSeconds([&] { step(front_); });
      back = ThreadSeconds([&] { step(back_); });
      return front + back;
    }
    std::thread other([&] { back = ThreadSeconds([&] { step(back_); }); });
    front = ThreadSeconds([&] { step(front_); });
    other.join();
    return std::max(front, back);
  }

  TransformCodec front_, back_;
};

// By threads - 1.
std::vector<Ladder> MeasureLadders() {
  TransformKv kv, decoded;
  const std::vector<uint8_t>& profile = CalibrateProfile(kv);
  kv.Fill(7);
  std::vector<std::unique_ptr<HalvesCodec>> codecs;
  for (const RungName& rung : kRungs)
    codecs.push_back(
        std::make_unique<HalvesCodec>(kv, rung, rung.ratio == 0 ? std::vector<uint8_t>() : profile));
  std::vector<Ladder> ladders(kThreads, Ladder(codecs.size()));
  for (int round = 0; round <= kRounds; ++round) {
    for (size_t i = 0; i < codecs.size(); ++i) {
      for (uint32_t threads = 1; threads <= kThreads; ++threads) {
        const CodecTimes times = codecs[i]->Measure(threads, decoded);
        MeasuredRung& rung = ladders[threads - 1][i];
        if (round == 0) {
          rung.told = threads == 1 ? times : ladders[0][i].told;
          rung.ratio = codecs[i]->ratio();
        } else {
          rung.rounds.push_back(times);
        }
      }
    }
  }
  return ladders;
}

// What a transfer without a codec is: rows as they are, or raw's frames.
enum class None { kRows, kFrames };

struct Shape {
  None none;
  uint32_t threads, segments;
  std::string name() const {
    return "threads " + std::to_string(threads) + ", segments " + std::to_string(segments) +
           (none == None::kFrames ? ", none is raw" : "");
  }
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const None none : {None::kRows, None::kFrames}) {
    for (uint32_t threads = 1; threads <= kThreads; ++threads) {
      for (const uint32_t segments : {1u, 16u}) shapes.push_back({none, threads, segments});
    }
  }
  return shapes;
}

std::vector<double> Bandwidths() {
  constexpr int kSteps = 22;
  std::vector<double> bandwidths;
  for (int i = 0; i <= kSteps; ++i)
    bandwidths.push_back(0.05e9 / 8 * std::pow(2000, static_cast<double>(i) / kSteps));
  return bandwidths;
}

double TransferSeconds(const CodecTimes& codec, double send, uint32_t segments) {
  const double more = segments - 1;
  return (codec.encode + send + codec.decode + more * std::max({codec.encode, send, codec.decode})) /
         segments;
}

class Planner {
 public:
  Planner(const Ladder& ladder, uint32_t threads, uint64_t seed) {
    std::vector<kvt_codec_rung_t> rungs;
    for (size_t i = 0; i < kNone; ++i) {
      const double bytes = static_cast<double>(kKvBytes) * threads;
      rungs.push_back({.encode_rate = bytes / ladder[i].told.encode,
                       .decode_rate = bytes / ladder[i].told.decode,
                       .ratio = ladder[i].ratio,
                       .quality_class = kRungs[i].quality_class,
                       .reserved = 0});
    }
    kvt_planner_options_t options;
    kvt_planner_options_init(&options, sizeof options);
    options.rungs = rungs.data();
    options.rung_count = static_cast<uint32_t>(rungs.size());
    options.seed = seed;
    Check(kvt_planner_create(&options, &planner_), "kvt_planner_create");
  }
  ~Planner() { kvt_planner_destroy(planner_); }
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // Plans a transfer, which takes what `seconds` says of the rung that is picked, reports and returns that.
  double Transfer(double bandwidth, uint32_t segments, const std::vector<double>& seconds) {
    kvt_codec_request_t request;
    kvt_codec_request_init(&request, sizeof request);
    request.bytes = kKvBytes;
    request.bandwidth = bandwidth;
    request.segments = segments;
    kvt_codec_choice_t choice = {};
    choice.struct_size = sizeof choice;
    Check(kvt_planner_pick_codec(planner_, &request, &choice), "kvt_planner_pick_codec");
    const double taken = seconds[choice.rung == KVT_RUNG_NONE ? kNone : choice.rung];
    Check(kvt_planner_observe(planner_, &choice, taken), "kvt_planner_observe");
    return taken;
  }

  double CrossoverGbit(uint32_t rung, uint32_t segments) const {
    double bandwidth = 0;
    Check(kvt_planner_crossover(planner_, rung, segments, kKvBytes, &bandwidth), "kvt_planner_crossover");
    return bandwidth * 8e-9;
  }

 private:
  kvt_planner_t planner_ = 0;
};

// Seconds of transfers at one bandwidth.
struct Total {
  double picked = 0, oracle = 0;
  double over() const { return picked / oracle; }
};

// One planner's life.
struct Replay {
  std::vector<Total> learning, judged;  // by bandwidth
  std::string crossovers;
};

Replay Simulate(const Ladder& ladder, const Shape& shape, uint64_t seed) {
  const std::vector<double> bandwidths = Bandwidths();
  Planner planner(ladder, shape.threads, seed);
  std::mt19937_64 random(seed);
  Replay replay;
  replay.learning.resize(bandwidths.size());
  replay.judged.resize(bandwidths.size());
  std::vector<double> seconds(ladder.size());
  for (int pass = 0; pass < kLearn + kJudge; ++pass) {
    std::vector<Total>& totals = pass < kLearn ? replay.learning : replay.judged;
    for (size_t b = 0; b < bandwidths.size(); ++b) {
      const size_t round = random() % kRounds;
      for (size_t i = 0; i < ladder.size(); ++i) {
        const double send = static_cast<double>(kKvBytes) / ladder[i].ratio / bandwidths[b];
        const bool codes = i != kNone || shape.none == None::kFrames;
        seconds[i] = TransferSeconds(codes ? ladder[i].rounds[round] : CodecTimes(), send, shape.segments);
      }
      totals[b].picked += planner.Transfer(bandwidths[b], shape.segments, seconds);
      totals[b].oracle += *std::min_element(seconds.begin(), seconds.end());
    }
  }
  for (uint32_t i = 0; i < kNone; ++i) {
    char text[64];
    std::snprintf(text, sizeof text, "%s%s %.2f", i == 0 ? "" : ", ", kRungs[i].codec,
                  planner.CrossoverGbit(i, shape.segments));
    replay.crossovers += text;
  }
  return replay;
}

// Keeps the worst of the medians over replays.
void Worsen(const std::vector<Replay>& replays, const std::string& where,
            const std::function<double(const Replay&)>& value, Bar* bar) {
  std::vector<double> values;
  for (const Replay& replay : replays) values.push_back(value(replay));
  const Sample sample = Summarise(values);
  if (sample.median <= bar->value) return;
  bar->value = sample.median;
  bar->spread = sample.spread;
  bar->note = "worst at " + where;
}

std::vector<Bar> PickCodec() {
  const std::vector<Ladder> ladders = MeasureLadders();
  Bar bar{.name = "pick_codec", .unit = "x oracle", .op = "<=", .bar = 1.03, .rounds = kReplays};
  Bar learning{.name = "pick_codec_learning", .unit = "x oracle", .rounds = kReplays};
  std::string crossovers;
  const std::vector<double> bandwidths = Bandwidths();
  for (const Shape& shape : Shapes()) {
    std::vector<Replay> replays;
    for (uint64_t seed = 0; seed < kReplays; ++seed)
      replays.push_back(Simulate(ladders[shape.threads - 1], shape, seed));
    for (size_t b = 0; b < bandwidths.size(); ++b) {
      char text[64];
      std::snprintf(text, sizeof text, "%.2f Gbit/s, ", bandwidths[b] * 8e-9);
      const auto over = [&](const Replay& replay) { return replay.judged[b].over(); };
      Worsen(replays, text + shape.name(), over, &bar);
    }
    const auto mean = [](const Replay& replay) {
      double sum = 0;
      for (const Total& total : replay.learning) sum += total.over();
      return sum / static_cast<double>(replay.learning.size());
    };
    Worsen(replays, shape.name(), mean, &learning);
    if (shape.none == None::kRows) crossovers += "; " + shape.name() + ": " + replays[0].crossovers;
  }
  bar.note += "; crossovers with none in Gbit/s" + crossovers;
  learning.note = "mean over bandwidths of a planner's first " + std::to_string(kLearn * bandwidths.size()) +
                  " transfers; " + learning.note;
  return {bar, learning};
}
KVT_BENCH(codec, PickCodec);

}  // namespace
}  // namespace kvt::bench
