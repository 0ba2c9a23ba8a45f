// How much memory a method takes. Threads: one at a time, and no other thread may be at work: what is
// measured is the process.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_MEMORY_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_MEMORY_H_

#include <cstdint>
#include <functional>
#include <optional>

namespace kvt::cli {

// Resident bytes of the process that `body` needed above those before it, at its peak; nothing where the
// system does not tell. The system counts in steps, so that some 100 KiB more or less mean nothing.
std::optional<uint64_t> PeakBytes(const std::function<void()>& body);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_MEMORY_H_
