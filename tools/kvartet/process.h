// A role of the demo in a process of its own: this program again, with one end of a socket pair as its
// channel.
#ifndef KVARTET_TOOLS_KVARTET_PROCESS_H_
#define KVARTET_TOOLS_KVARTET_PROCESS_H_

#include <sys/types.h>

#include <string>

#include "kvartet/channel.h"

namespace kvt::cli {

inline constexpr int kRoleFd = 3;

class Process {
 public:
  // Starts `kvartet role NAME`; the child dies with this process. Throws Failure.
  explicit Process(const std::string& role);
  // Ends the process if it still runs.
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  Channel& channel() { return channel_; }
  void Signal(int signal) const;

 private:
  pid_t pid_ = -1;
  Channel channel_{-1};
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_PROCESS_H_
