// Nanoseconds since this object was made, on the steady clock.
#ifndef KVARTET_TOOLS_KVARTET_CLOCK_H_
#define KVARTET_TOOLS_KVARTET_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace kvt::cli {

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

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_CLOCK_H_
