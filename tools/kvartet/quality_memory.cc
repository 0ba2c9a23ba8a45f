#include "kvartet/quality_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace kvt::cli {
namespace {

// A field of this process's status, in bytes.
std::optional<uint64_t> Status(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name; status.ignore(1 << 20, '\n')) {
    uint64_t kib = 0;
    if (name == field && status >> kib) return kib << 10;
  }
  return std::nullopt;
}

// Makes the present resident memory the highest so far.
bool ForgetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  return static_cast<bool>(file.flush());
}

}  // namespace

std::optional<uint64_t> PeakBytes(const std::function<void()>& body) {
  malloc_trim(0);
  const bool forgotten = ForgetPeak();
  const std::optional<uint64_t> before = Status("VmRSS:");
  body();
  const std::optional<uint64_t> peak = Status("VmHWM:");
  if (!forgotten || !before || !peak) return std::nullopt;
  return *peak > *before ? *peak - *before : 0;
}

}  // namespace kvt::cli
