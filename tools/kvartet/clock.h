// The time that something takes: on the steady clock, or of one thread's processor.
#ifndef KVARTET_TOOLS_KVARTET_CLOCK_H_
#define KVARTET_TOOLS_KVARTET_CLOCK_H_

#include <time.h>

#include <chrono>
#include <cstdint>

namespace kvt::cli {

// Nanoseconds since this object was made, on the steady clock.
class Clock {
 public:
  uint64_t Nanoseconds() const {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_)
            .count());
  }
  double Milliseconds() const { return static_cast<double>(Nanoseconds()) / 1e6; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Microseconds of processor time that this thread has had: what else runs on the machine does not count.
inline double ThreadMicroseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_CLOCK_H_
