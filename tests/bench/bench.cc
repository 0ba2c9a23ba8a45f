#include "bench/bench.h"

#include <kvartet/kvartet.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace kvt::bench {

Sample Summarise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const double median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {median, (values.back() - values.front()) / median};
}

Pair Interleave(int rounds, const std::function<double()>& ours, const std::function<double()>& peer) {
  ours();
  peer();
  std::vector<double> a, b, ratio;
  for (int round = 0; round < rounds; ++round) {
    double mine, theirs;
    if (round % 2 == 0) {
      mine = ours();
      theirs = peer();
    } else {
      theirs = peer();
      mine = ours();
    }
    a.push_back(mine);
    b.push_back(theirs);
    ratio.push_back(theirs / mine);
  }
  return {Summarise(a), Summarise(b), Summarise(ratio)};
}

double Seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Fail(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(2);
}

void Check(int32_t status, const char* call) {
  if (status == KVT_OK) return;
  char text[KVT_ERROR_TEXT_MAX];
  size_t size = 0;
  kvt_last_error(text, sizeof text, &size);
  Fail(std::string(call) + ": " + kvt_status_name(status) + ": " + std::string(text, size));
}

}  // namespace kvt::bench
