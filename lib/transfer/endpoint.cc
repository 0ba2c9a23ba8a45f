#include "transfer/endpoint.h"

#include <algorithm>
#include <optional>

namespace kvt::transfer {
namespace {

// Connections beyond the limit that are told so at a time; more are just closed.
constexpr size_t kMaxRefusing = 16;
constexpr auto kAcceptAgain = std::chrono::milliseconds(100);
constexpr auto kDrainAgain = std::chrono::milliseconds(2);

// A result that one thread waits for and another sets; the last holder of a Setter gives KVT_ERR_CLOSED.
// Errors cross as code and text: threads share no Status.
template <typename T>
class Promise {
 public:
  void Set(StatusOr<T> value) {
    MutexLock lock(&mu_);
    if (set_) return;
    set_ = true;
    code_ = CodeOf(value.status());
    text_ = std::string(value.status().message());
    if (value.ok()) value_ = *std::move(value);
    changed_.SignalAll();
  }
  // Nothing when the deadline has passed. Takes the value.
  std::optional<StatusOr<T>> Wait(Deadline deadline) {
    MutexLock lock(&mu_);
    while (!set_) {
      if (!changed_.WaitUntil(&mu_, deadline.time()) && !set_) return std::nullopt;
    }
    if (code_ != KVT_OK) return Error(code_, text_);
    return std::move(value_);
  }
  static std::shared_ptr<void> Setter(const std::shared_ptr<Promise>& promise) {
    return std::shared_ptr<void>(nullptr, [promise](void*) {
      promise->Set(Error(KVT_ERR_CLOSED, "close or destroy of the node has begun"));
    });
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mu_) = false;
  kvt_status_t code_ ABSL_GUARDED_BY(mu_) = KVT_OK;
  std::string text_ ABSL_GUARDED_BY(mu_);
  T value_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace

StatusOr<std::shared_ptr<Endpoint>> Endpoint::Create(std::shared_ptr<Runtime> runtime,
                                                     const EndpointOptions& options) {
  KVT_ASSIGN_OR_RETURN(auto core, Core::Create(std::move(runtime), options.identity));
  net::Place place;
  net::Listener listener;
  std::shared_ptr<net::TokenBucket> bucket;
  if (!options.listen.empty()) {
    KVT_ASSIGN_OR_RETURN(place, net::Place::Parse(options.listen));
    KVT_ASSIGN_OR_RETURN(net::Listener opened, net::Listener::Open(place));
    bucket = std::make_shared<net::TokenBucket>(place.bytes_per_second, net::Loop::Clock::now());
    std::shared_ptr<Endpoint> endpoint(
        new Endpoint(std::move(core), options, std::move(opened), std::move(bucket)));
    KVT_RETURN_IF_ERROR(endpoint->Run());
    return endpoint;
  }
  std::shared_ptr<Endpoint> endpoint(
      new Endpoint(std::move(core), options, std::move(listener), std::move(bucket)));
  KVT_RETURN_IF_ERROR(endpoint->Run());
  return endpoint;
}

Endpoint::Endpoint(std::shared_ptr<Core> core, const EndpointOptions& options, net::Listener listener,
                   std::shared_ptr<net::TokenBucket> bucket)
    : core_(std::move(core)),
      max_connections_(options.max_connections),
      name_servers_(options.name_servers),
      url_(listener.url()),
      listener_(std::move(listener)),
      bucket_(std::move(bucket)) {}

Status Endpoint::Run() {
  streams_ = std::make_shared<Streams>(core_, [this, core = core_] {
    // After Shutdown the loop drops the task, so it never outlives the endpoint.
    core->loop->Post([this] { OnStreams(); });
  });
  if (listener_.fd() >= 0) {
    KVT_ASSIGN_OR_RETURN(listen_watch_,
                         core_->loop->Watch(listener_.fd(), EPOLLIN, [this](uint32_t) { OnAccept(); }));
  }
  KVT_ASSIGN_OR_RETURN(thread_, core_->runtime->StartLoop("kvt-node", [core = core_] { core->loop->Run(); }));
  return OkStatus();
}

void Endpoint::Prune() {
  std::erase_if(served_, [](const auto& served) { return !served->open(); });
  std::erase_if(remotes_, [](const auto& remote) { return remote->closed(); });
}

void Endpoint::OnAccept() {
  for (;;) {
    auto fd = listener_.Accept();
    if (!fd.ok()) {
      core_->runtime->Log(KVT_LOG_WARNING, fd.status().message());
      core_->loop->Forget(std::exchange(listen_watch_, 0));
      if (CodeOf(fd.status()) != KVT_ERR_LIMIT) return;
      listen_again_ = core_->loop->At(core_->loop->now() + kAcceptAgain, [this] {
        listen_again_ = 0;
        auto watch = core_->loop->Watch(listener_.fd(), EPOLLIN, [this](uint32_t) { OnAccept(); });
        if (watch.ok()) listen_watch_ = *watch;
      });
      return;
    }
    if (!fd->valid()) return;
    Prune();
    Status refused;
    if (served_.size() >= max_connections_)
      refused = Error(KVT_ERR_LIMIT,
                      absl::StrCat("max_connections is ", max_connections_, " and as many are open"));
    if (served_.size() >= max_connections_ + kMaxRefusing) {
      core_->counters.Count(refused);
      continue;
    }
    auto served = std::make_shared<Served>(core_, shelf_, streams_, *std::move(fd), bucket_);
    if (served->Start(refused).ok()) served_.push_back(std::move(served));
  }
}

void Endpoint::OnStreams() {
  for (const auto& served : served_) served->OnStreams();
}

StatusOr<std::shared_ptr<Remote>> Endpoint::Connect(absl::string_view url, Deadline deadline) {
  KVT_ASSIGN_OR_RETURN(const net::Place place, net::Place::Parse(url));
  if (closed()) return Error(KVT_ERR_CLOSED, "close or destroy of the node has begun");
  std::shared_ptr<net::TokenBucket> bucket = bucket_;
  if (place.bytes_per_second != 0)
    bucket = std::make_shared<net::TokenBucket>(place.bytes_per_second, net::Loop::Clock::now());
  auto remote = std::make_shared<Remote>(core_, place, std::move(bucket));
  auto promise = std::make_shared<Promise<bool>>();
  core_->loop->Post([this, remote, promise, setter = Promise<bool>::Setter(promise)] {
    Prune();
    remotes_.push_back(remote);
    remote->Connect(name_servers_, [promise, setter](const Status& status) {
      promise->Set(status.ok() ? StatusOr<bool>(true) : StatusOr<bool>(status));
    });
  });
  const auto ready = promise->Wait(deadline);
  if (!ready.has_value()) {
    const char* what =
        remote->looking_up() ? " reached the deadline while its host was looked up" : " reached the deadline";
    remote->Disconnect();
    return Error(KVT_ERR_TIMEOUT, absl::StrCat("connect to ", place.text, what));
  }
  KVT_RETURN_IF_ERROR(ready->status());
  return remote;
}

StatusOr<std::shared_ptr<Stream>> Endpoint::OpenStream(const Key& key) {
  if (closed()) return Error(KVT_ERR_CLOSED, "close or destroy of the node has begun");
  return streams_->Open(key);
}

void Endpoint::StopListening() {
  core_->loop->Forget(std::exchange(listen_watch_, 0));
  core_->loop->Drop(std::exchange(listen_again_, 0));
  listener_.Close();
}

Status Endpoint::Close(Deadline deadline) {
  {
    MutexLock lock(&mu_);
    closed_ = true;
  }
  core_->operations->Close();
  auto idle = std::make_shared<Promise<bool>>();
  // Looks again and again until what peers have asked for is answered, or nobody waits any more.
  auto look = std::make_shared<std::function<void(const std::shared_ptr<void>&)>>();
  *look = [this, idle, deadline, weak = std::weak_ptr(look)](const std::shared_ptr<void>& setter) {
    const bool owes =
        std::any_of(served_.begin(), served_.end(), [](const auto& served) { return served->busy(); });
    if (!owes) return idle->Set(true);
    const auto self = weak.lock();
    if (self == nullptr || deadline.Expired()) return;
    core_->loop->At(core_->loop->now() + kDrainAgain, [self, setter] { (*self)(setter); });
  };
  core_->loop->Post([this, look, setter = Promise<bool>::Setter(idle)] {
    StopListening();
    (*look)(setter);
  });
  KVT_RETURN_IF_ERROR(core_->operations->WaitIdle(deadline));
  const auto answered = idle->Wait(deadline);
  if (answered.has_value() && answered->ok()) return OkStatus();
  // The loop gives up at the deadline too, and when the node is destroyed meanwhile.
  if (answered.has_value() && !deadline.Expired()) return answered->status();
  return Error(KVT_ERR_TIMEOUT, "peers still wait for answers of this node");
}

void Endpoint::Shutdown() {
  {
    MutexLock lock(&mu_);
    closed_ = true;
    if (std::exchange(shut_down_, true)) return;
  }
  if (thread_.joinable()) {
    core_->operations->CancelAll();
    core_->loop->Post([this] {
      StopListening();
      const Status reason = Error(KVT_ERR_PEER_DEAD, "this node was destroyed");
      for (const auto& served : served_) served->Close(reason);
      for (const auto& remote : remotes_) remote->Close(Error(KVT_ERR_CLOSED, "the node was destroyed"));
      core_->loop->Stop();
    });
    thread_.join();
  }
  core_->EndWork();
  served_.clear();
  remotes_.clear();
}

}  // namespace kvt::transfer
