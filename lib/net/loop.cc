#include "net/loop.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <cerrno>

#include "base/boundary.h"

namespace kvt::net {
namespace {

// Ids of the loop's own descriptors; watches begin above.
constexpr uint64_t kWake = UINT64_MAX;
constexpr uint64_t kTimer = UINT64_MAX - 1;

Status Add(const Fd& epoll, int fd, uint32_t events, uint64_t id) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return ErrnoError(errno, "epoll_ctl", absl::StrCat("descriptor ", fd));
  return OkStatus();
}

void Drain(const Fd& fd) {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(fd.get(), &count, sizeof count);
}

}  // namespace

StatusOr<std::shared_ptr<Loop>> Loop::Create(std::function<void(const Status&)> on_failure) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoError(errno, "epoll_create1", "for a node");
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoError(errno, "eventfd", "for a node");
  Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return ErrnoError(errno, "timerfd_create", "for a node");
  KVT_RETURN_IF_ERROR(Add(epoll, wake.get(), EPOLLIN, kWake));
  KVT_RETURN_IF_ERROR(Add(epoll, timer.get(), EPOLLIN, kTimer));
  return std::shared_ptr<Loop>(
      new Loop(std::move(epoll), std::move(wake), std::move(timer), std::move(on_failure)));
}

// Nothing may leave the thread, which is the host's process.
template <typename Body>
void Loop::Call(Body&& body) {
  const Status failed = CaughtIn(std::forward<Body>(body));
  if (!failed.ok() && on_failure_) on_failure_(failed);
}

void Loop::Run() {
  while (!stopped()) Turn();
  watches_.clear();
  timers_.clear();
  timer_times_.clear();
}

void Loop::Turn() {
  epoll_event events[64];
  ArmTimer();
  const int count = epoll_wait(epoll_.get(), events, 64, -1);
  // A process that was stopped and goes on comes back with EINTR: bytes may wait, so no timer runs yet.
  if (count < 0) return;
  now_ = Clock::now();
  // Descriptors before timers: bytes that waited while this thread did not run count as received.
  for (int i = 0; i < count && !stopped(); ++i) {
    const uint64_t id = events[i].data.u64;
    if (id == kWake) {
      Drain(wake_);
    } else if (id == kTimer) {
      Drain(timer_);
      armed_ = Time::max();
    } else if (const auto found = watches_.find(id); found != watches_.end()) {
      const std::shared_ptr<Watched> watched = found->second;
      Call([&] { watched->on_event(events[i].events); });
    }
  }
  RunTasks();
  RunTimers();
}

void Loop::Stop() {
  std::vector<std::function<void()>> dropped;
  MutexLock lock(&mu_);
  stopped_.store(true, std::memory_order_release);
  dropped.swap(tasks_);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void Loop::Post(std::function<void()> task) {
  MutexLock lock(&mu_);
  if (stopped()) return;
  if (tasks_.empty()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  }
  tasks_.push_back(std::move(task));
}

void Loop::RunTasks() {
  std::vector<std::function<void()>> tasks;
  {
    MutexLock lock(&mu_);
    tasks.swap(tasks_);
  }
  for (std::function<void()>& task : tasks) {
    if (!stopped()) Call(task);
    task = nullptr;
  }
}

StatusOr<Loop::WatchId> Loop::Watch(int fd, uint32_t events, std::function<void(uint32_t)> on_event) {
  const WatchId id = next_id_++;
  KVT_RETURN_IF_ERROR(Add(epoll_, fd, events, id));
  watches_.emplace(id, std::make_shared<Watched>(Watched{fd, std::move(on_event)}));
  return id;
}

void Loop::Change(WatchId id, uint32_t events) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second->fd, &event);
}

void Loop::Forget(WatchId id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second->fd, nullptr);
  // The callback may be the one that runs: it goes when the caller of it lets go.
  const std::shared_ptr<Watched> keep = std::move(found->second);
  watches_.erase(found);
}

Loop::TimerId Loop::At(Time time, std::function<void()> task) {
  const TimerId id = next_id_++;
  timers_.emplace(std::make_pair(time, id), std::move(task));
  timer_times_.emplace(id, time);
  return id;
}

void Loop::Drop(TimerId id) {
  const auto found = timer_times_.find(id);
  if (found == timer_times_.end()) return;
  timers_.erase({found->second, id});
  timer_times_.erase(found);
}

void Loop::ArmTimer() {
  const Time next = timers_.empty() ? Time::max() : timers_.begin()->first.first;
  // A timer armed too early costs one round; one armed too late would be wrong.
  if (next >= armed_ || next == Time::max()) return;
  armed_ = next;
  const auto ns = std::max<int64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(next.time_since_epoch()).count(), 1);
  itimerspec spec = {};
  spec.it_value.tv_sec = ns / 1'000'000'000;
  spec.it_value.tv_nsec = ns % 1'000'000'000;
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Loop::RunTimers() {
  // By now(), not by the clock: a timer that arms itself for later than now() waits for the next round,
  // however long this thread was held up.
  while (!stopped() && !timers_.empty() && timers_.begin()->first.first <= now_) {
    auto entry = timers_.extract(timers_.begin());
    timer_times_.erase(entry.key().second);
    Call(entry.mapped());
  }
}

}  // namespace kvt::net
