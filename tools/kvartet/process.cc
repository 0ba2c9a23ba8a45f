#include "kvartet/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kvartet/library.h"

namespace kvt::cli {

Process::Process(const std::string& role) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Failure(std::string("socketpair: ") + std::strerror(errno));
  pid_ = fork();
  if (pid_ < 0) throw Failure(std::string("fork: ") + std::strerror(errno));
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ends[1] == kRoleFd) {
      fcntl(kRoleFd, F_SETFD, 0);
    } else {
      dup2(ends[1], kRoleFd);
    }
    execl("/proc/self/exe", "kvartet", "role", role.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  channel_ = Channel(ends[0]);
}

Process::~Process() {
  if (pid_ <= 0) return;
  // A stopped process gets SIGKILL too.
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), channel_(std::move(other.channel_)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(channel_, other.channel_);
  return *this;
}

void Process::Signal(int signal) const { kill(pid_, signal); }

}  // namespace kvt::cli
