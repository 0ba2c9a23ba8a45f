#include "net/lookup.h"

#include <ares.h>

#include <algorithm>

namespace kvt::net {
namespace {

Status InitError(int code) {
  return Error(code == ARES_ENOMEM ? KVT_ERR_OUT_OF_MEMORY : KVT_ERR_IO,
               absl::StrCat("the resolver did not start: ", ares_strerror(code)));
}

// One question that is not answered is asked again after so long.
constexpr int kAskAgainMs = 1000;
constexpr auto kSoonest = std::chrono::milliseconds(1);

}  // namespace

StatusOr<std::shared_ptr<Lookup>> Lookup::Start(Loop* loop, Place place, const std::string& servers,
                                                Done done) {
  std::shared_ptr<Lookup> lookup(new Lookup(loop, std::move(place), std::move(done)));
  KVT_RETURN_IF_ERROR(lookup->Ask(servers));
  return lookup;
}

Status Lookup::Ask(const std::string& servers) {
  ares_options options = {};
  options.timeout = kAskAgainMs;
  options.sock_state_cb = [](void* self, ares_socket_t fd, int readable, int writable) {
    static_cast<Lookup*>(self)->OnSocket(fd, readable != 0, writable != 0);
  };
  options.sock_state_cb_data = this;
  // Not ares_library_init: on this system it only changes process-wide state, which may be the host's.
  int code = ares_init_options(&channel_, &options, ARES_OPT_TIMEOUTMS | ARES_OPT_SOCK_STATE_CB);
  if (code != ARES_SUCCESS) {
    channel_ = nullptr;
    return InitError(code);
  }
  if (!servers.empty()) code = ares_set_servers_ports_csv(channel_, servers.c_str());
  if (code != ARES_SUCCESS) return InitError(code);
  ares_addrinfo_hints hints = {};
  hints.ai_flags = ARES_AI_NUMERICSERV;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  ares_getaddrinfo(
      channel_, place_.host.c_str(), place_.port.c_str(), &hints,
      [](void* self, int answer, int, ares_addrinfo* found) {
        static_cast<Lookup*>(self)->OnAnswer(answer, found);
      },
      this);
  ArmTimer();
  return OkStatus();
}

void Lookup::End() {
  done_ = nullptr;
  loop_->Drop(std::exchange(timer_, 0));
  // Calls OnAnswer and OnSocket for what is still open.
  if (channel_ != nullptr) ares_destroy(std::exchange(channel_, nullptr));
}

void Lookup::OnSocket(int fd, bool readable, bool writable) {
  Watched& watched = sockets_[fd];
  watched.events = (readable ? uint32_t{EPOLLIN} : 0u) | (writable ? uint32_t{EPOLLOUT} : 0u);
  if (watched.events == 0) {
    loop_->Forget(watched.watch);
    sockets_.erase(fd);
  } else if (watched.watch != 0) {
    loop_->Change(watched.watch, watched.events);
  } else {
    auto watch = loop_->Watch(fd, watched.events, [this, fd](uint32_t events) {
      const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
      Process((events & EPOLLIN) != 0 || broken ? fd : ARES_SOCKET_BAD,
              (events & EPOLLOUT) != 0 ? fd : ARES_SOCKET_BAD);
    });
    // Without a watch the question ends by its time.
    if (watch.ok()) watched.watch = *watch;
  }
}

void Lookup::Process(int readable, int writable) {
  const auto keep = shared_from_this();
  if (channel_ == nullptr) return;
  ares_process_fd(channel_, readable, writable);
  ArmTimer();
}

void Lookup::ArmTimer() {
  loop_->Drop(std::exchange(timer_, 0));
  timeval left = {};
  if (channel_ == nullptr || ares_timeout(channel_, nullptr, &left) == nullptr) return;
  const auto wait = std::max<Loop::Clock::duration>(
      std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec), kSoonest);
  timer_ = loop_->At(Loop::Clock::now() + wait, [this] {
    timer_ = 0;
    Process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  });
}

// May be called inside of any call of c-ares, where nothing of it may be ended.
void Lookup::OnAnswer(int code, ares_addrinfo* found) {
  const std::unique_ptr<ares_addrinfo, void (*)(ares_addrinfo*)> free_it(found, ares_freeaddrinfo);
  if (done_ == nullptr) return;
  auto address = std::make_shared<StatusOr<Address>>(Read(code, found));
  loop_->Post([weak = weak_from_this(), address] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (const Done done = std::exchange(self->done_, nullptr)) done(std::move(*address));
  });
}

StatusOr<Address> Lookup::Read(int code, const ares_addrinfo* found) const {
  const auto fail = [&](kvt_status_t status, absl::string_view what) {
    return Error(status,
                 absl::StrCat(place_.text, ": host \"", place_.host, "\" ", what, ": ", ares_strerror(code)));
  };
  switch (code) {
    case ARES_SUCCESS:
      // Sorted: the first is the one to use.
      if (found == nullptr || found->nodes == nullptr)
        return fail(KVT_ERR_INVALID_ARGUMENT, "has no address");
      return Admit(place_, found->nodes->ai_addr, found->nodes->ai_addrlen);
    case ARES_ETIMEOUT:
      return fail(KVT_ERR_TIMEOUT, "was asked for in vain");
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
    case ARES_EBADNAME:
      return fail(KVT_ERR_INVALID_ARGUMENT, "was not found");
    case ARES_ENOMEM:
      return fail(KVT_ERR_OUT_OF_MEMORY, "was not looked up");
    default:
      return fail(KVT_ERR_PEER_DEAD, "was not looked up");
  }
}

}  // namespace kvt::net
