// Loop: one thread's descriptors, timers and tasks.
//
// Post and Stop are thread-safe. Everything else, and every callback, belongs to the thread that runs Run();
// no lock is held while a callback runs. Callbacks may watch, forget and post at will.
#ifndef KVARTET_LIB_NET_LOOP_H_
#define KVARTET_LIB_NET_LOOP_H_

#include <sys/epoll.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/deadline.h"
#include "base/mutex.h"
#include "net/fd.h"

namespace kvt::net {

class Loop {
 public:
  using Clock = Deadline::Clock;
  using Time = Clock::time_point;
  using TimerId = uint64_t;  // 0 is no timer
  using WatchId = uint64_t;  // 0 is no watch

  // `on_failure` learns of what a task, timer or callback has thrown; the loop goes on.
  static StatusOr<std::shared_ptr<Loop>> Create(std::function<void(const Status&)> on_failure = nullptr);

  // Runs until Stop; then drops the tasks, timers and watches that are left.
  void Run();
  // One round: waits for events, then handles them, the tasks and the timers that are due.
  void Turn();
  // After it no callback begins.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // Queues a task for the loop's thread. After Stop tasks are dropped.
  void Post(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

  // Calls `on_event` with the EPOLL* events that are ready, level-triggered.
  StatusOr<WatchId> Watch(int fd, uint32_t events, std::function<void(uint32_t)> on_event);
  void Change(WatchId id, uint32_t events);
  void Forget(WatchId id);

  TimerId At(Time time, std::function<void()> task);
  // 0 and timers that have fired are accepted.
  void Drop(TimerId id);

  // The time at which the current round of events began.
  Time now() const { return now_; }

 private:
  struct Watched {
    int fd;
    std::function<void(uint32_t)> on_event;
  };

  Loop(Fd epoll, Fd wake, Fd timer, std::function<void(const Status&)> on_failure)
      : epoll_(std::move(epoll)),
        wake_(std::move(wake)),
        timer_(std::move(timer)),
        on_failure_(std::move(on_failure)) {}
  template <typename Body>
  void Call(Body&& body);
  void ArmTimer();
  void RunTasks() ABSL_LOCKS_EXCLUDED(mu_);
  void RunTimers();
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

  const Fd epoll_, wake_, timer_;
  const std::function<void(const Status&)> on_failure_;
  Time now_ = Clock::now();
  Time armed_ = Time::max();
  uint64_t next_id_ = 1;
  absl::flat_hash_map<WatchId, std::shared_ptr<Watched>> watches_;
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers_;
  absl::flat_hash_map<TimerId, Time> timer_times_;

  std::atomic<bool> stopped_{false};  // set under mu_
  Mutex mu_;
  std::vector<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace kvt::net

#endif  // KVARTET_LIB_NET_LOOP_H_
