#include "kvartet/repetition.h"

#include <set>
#include <vector>

namespace kvt::cli {

double RepeatedShare(std::span<const int32_t> tokens, size_t run) {
  if (tokens.empty()) return 0;
  std::set<std::vector<int32_t>> seen;
  size_t repeated = 0;
  for (size_t end = run; end <= tokens.size(); ++end) {
    const auto last = tokens.subspan(end - run, run);
    if (!seen.emplace(last.begin(), last.end()).second) ++repeated;
  }
  return static_cast<double>(repeated) / static_cast<double>(tokens.size());
}

}  // namespace kvt::cli
