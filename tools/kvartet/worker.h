// One thread that runs tasks in the order in which they come. Threads: one caller at a time.
#ifndef KVARTET_TOOLS_KVARTET_WORKER_H_
#define KVARTET_TOOLS_KVARTET_WORKER_H_

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace kvt::cli {

class Worker {
 public:
  Worker();
  // What has not begun does not run.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // After a task has thrown, later ones do not run until Wait() has thrown it again.
  void Run(std::function<void()> task);
  // Returns when all tasks have run.
  void Wait();

 private:
  void Loop();

  std::mutex mutex_;  // of all below but the thread
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool running_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_WORKER_H_
