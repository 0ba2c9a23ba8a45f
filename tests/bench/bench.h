// The benchmark harness: bars as ratios against a peer that is run in turn with ours, in the same process of
// measuring.
//
// A bench file registers functions with KVT_BENCH(area, function); each returns the bars it measured.
// Single-threaded.
#ifndef KVARTET_TESTS_BENCH_BENCH_H_
#define KVARTET_TESTS_BENCH_BENCH_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kvt::bench {

struct Peer {
  std::string name;
  double value = 0;
};

// One line of the report. `value` is the figure that the bar speaks of, on the worst of its cases.
struct Bar {
  std::string name;
  double value = 0;
  std::string unit;
  std::string op;  // ">=" or "<="; empty: reported without a bar
  double bar = 0;
  std::optional<Peer> peer;
  int rounds = 0;
  double spread = 0;  // (largest - smallest) / median over the rounds
  std::string note;   // the absolute figures, in words

  bool ok() const { return op.empty() || (op == ">=" ? value >= bar : value <= bar); }
};

struct Sample {
  double median = 0;
  double spread = 0;
};
Sample Summarise(std::vector<double> values);

// Runs `ours` and `peer` in turn, once unmeasured and then `rounds` times, the order swapped every round.
// Each returns its seconds.
struct Pair {
  Sample ours, peer;    // seconds
  Sample peer_by_ours;  // per round: peer seconds / our seconds, that is our speed over the peer's
};
Pair Interleave(int rounds, const std::function<double()>& ours, const std::function<double()>& peer);

// Seconds that `body` takes.
double Seconds(const std::function<void()>& body);

// Prints the failed call with its text and ends the program with 2.
[[noreturn]] void Fail(const std::string& what);
void Check(int32_t status, const char* call);

using Function = std::vector<Bar> (*)();
struct Registration {
  Registration(const char* area, const char* name, Function function);
};

}  // namespace kvt::bench

#define KVT_BENCH(area, function) \
  static const ::kvt::bench::Registration kvt_bench_##function(#area, #function, function)

#endif  // KVARTET_TESTS_BENCH_BENCH_H_
