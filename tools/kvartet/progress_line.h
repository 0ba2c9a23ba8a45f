// One line on a terminal that is written over; one line a stage when standard error is a file. A stage is the
// text before the first colon. Threads: one at a time.
#ifndef KVARTET_TOOLS_KVARTET_PROGRESS_LINE_H_
#define KVARTET_TOOLS_KVARTET_PROGRESS_LINE_H_

#include <unistd.h>

#include <cstdio>
#include <string>

namespace kvt::cli {

class ProgressLine {
 public:
  void Show(const std::string& text) {
    if (!terminal_ && text.find(':') != std::string::npos && text.substr(0, text.find(':')) == stage_) return;
    stage_ = text.substr(0, text.find(':'));
    std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", text.c_str());
    std::fflush(stderr);
  }
  void Clear() const {
    if (terminal_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::string stage_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_PROGRESS_LINE_H_
