#include "bench/bench_transfer_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace kvt::bench {
namespace {

// A program on one processor, with what it prints.
class Program {
 public:
  Program(const std::vector<std::string>& arguments, int cpu) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<size_t>(cpu % sysconf(_SC_NPROCESSORS_ONLN)), &set);
      sched_setaffinity(0, sizeof set, &set);
      dup2(fds[1], 1);
      dup2(fds[1], 2);
      std::vector<char*> argv;
      for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      execvp(argv[0], argv.data());
      _exit(127);
    }
    close(fds[1]);
    output_ = fds[0];
  }
  ~Program() {
    if (output_ >= 0) close(output_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reads until `word` has been printed with something after it up to a line's end; what follows the word.
  std::string After(const std::string& word, int seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    for (;;) {
      const size_t at = text_.find(word);
      const size_t line = at == std::string::npos ? at : text_.find('\n', at);
      if (line != std::string::npos) return text_.substr(at + word.size(), line - at - word.size());
      pollfd readable = {output_, POLLIN, 0};
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now())
              .count();
      char buffer[4096];
      if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) <= 0) return "";
      const ssize_t n = read(output_, buffer, sizeof buffer);
      if (n <= 0) return "";
      text_.append(buffer, static_cast<size_t>(n));
    }
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  std::string text_;
};

}  // namespace

std::string Iperf3() {
  Program server({"iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", "15201", "--forceflush"}, 0);
  if (server.After("listening on", 5).empty()) return "absent";
  Program client({"iperf3", "-c", "127.0.0.1", "-p", "15201", "-t", "2", "-l", "1M", "-f", "m"}, 1);
  // The line below the sender's: "[  5]   0.00-2.00   sec  7.5 GBytes  32100 Mbits/sec   receiver".
  const std::string line = client.After("sender\n", 20);
  const size_t unit = line.find("Bytes");
  const double bits = unit == std::string::npos ? 0 : std::atof(line.c_str() + unit + 5) * 1e6;
  char text[64];
  std::snprintf(text, sizeof text, "%.2f GB/s", bits / 8e9);
  return bits > 0 ? text : "absent";
}

MooncakeRate Mooncake64k() {
  const char* program = std::getenv("KVT_BENCH_PEER");
  MooncakeRate best;
  if (program == nullptr) return best;
  setenv("MC_FORCE_TCP", "true", 1);
  for (const char* pool : {"0", "1"}) {
    setenv("MC_TCP_ENABLE_CONNECTION_POOL", pool, 1);
    const std::vector<std::string> common = {program, "--protocol=tcp", "--metadata_server=P2PHANDSHAKE",
                                             "--buffer_size=268435456"};
    std::vector<std::string> target = common;
    target.insert(target.end(), {"--mode=target", "--local_server_name=127.0.0.1:15428"});
    Program serving(target, 0);
    const std::string port = serving.After("listening on 127.0.0.1:", 20);
    if (port.empty()) return best;
    for (const char* operation : {"write", "read"}) {
      std::vector<std::string> initiator = common;
      initiator.insert(initiator.end(),
                       {"--mode=initiator", "--local_server_name=127.0.0.1:15429",
                        "--segment_id=127.0.0.1:" + std::to_string(std::atoi(port.c_str())),
                        std::string("--operation=") + operation, "--block_size=65536", "--batch_size=128",
                        "--threads=1", "--duration=2", "--report_unit=GB"});
      Program client(initiator, 1);
      const double rate = std::atof(client.After("throughput ", 30).c_str());
      if (rate > best.gb_per_s) {
        best.gb_per_s = rate;
        best.settings = std::string(operation) + ", batch 128" + (*pool == '1' ? ", connection pool" : "");
      }
    }
  }
  unsetenv("MC_FORCE_TCP");
  unsetenv("MC_TCP_ENABLE_CONNECTION_POOL");
  return best;
}

}  // namespace kvt::bench
