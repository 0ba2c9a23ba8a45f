// How much of an output repeats itself: greedy output of small models falls into loops, which any cache
// continues. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_REPETITION_H_
#define KVARTET_TOOLS_KVARTET_REPETITION_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvt::cli {

// The share of tokens with which a run of `run` tokens ends that has occurred before. 0 for shorter outputs.
double RepeatedShare(std::span<const int32_t> tokens, size_t run = 16);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_REPETITION_H_
