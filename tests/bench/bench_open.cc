// open_ms: what a host pays before its first call does useful work.
#include <dlfcn.h>
#include <kvartet/kvartet.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/bench.h"

namespace kvt::bench {
namespace {

// dlopen + runtime + mem: cache, in a fresh process image that has not loaded the library (this program has,
// so it re-executes a helper).
double OpenOnce() {
  FILE* pipe = popen(KVT_BENCH_OPEN_HELPER " " KVT_BENCH_LIBRARY, "r");
  double ms = 0;
  if (pipe == nullptr || std::fscanf(pipe, "%lf", &ms) != 1) Fail("the open helper printed no time");
  if (pclose(pipe) != 0) Fail("the open helper failed");
  return ms;
}

std::vector<Bar> Open() {
  std::vector<double> times;
  OpenOnce();
  for (int i = 0; i < 15; ++i) times.push_back(OpenOnce());
  const Sample sample = Summarise(times);
  Bar bar{.name = "open_ms",
          .value = sample.median,
          .unit = "ms",
          .op = "<=",
          .bar = 10,
          .rounds = 15,
          .spread = sample.spread,
          .note = "dlopen + runtime + mem: cache in a fresh process"};
  return {bar};
}
KVT_BENCH(core, Open);

}  // namespace
}  // namespace kvt::bench
