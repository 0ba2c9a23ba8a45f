#include "unit/transfer/fixture.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include "absl/strings/numbers.h"
#include "transfer/wire.h"

namespace kvt::transfer {
namespace {

// Longer than any stall time here.
constexpr int kPatienceMs = 20'000;

bool Readable(int fd, int ms) {
  pollfd waiting = {fd, POLLIN, 0};
  return poll(&waiting, 1, ms) == 1;
}

}  // namespace

StatusOr<Pinned> MapStore::Get(const Key& key) {
  MutexLock lock(&mu_);
  const auto found = frames_.find(key);
  if (found == frames_.end()) return Error(KVT_ERR_NOT_FOUND, "no such frame");
  return Pinned{AsBytes(*found->second), found->second};
}

Status MapStore::Put(const Key& key, Pinned frame) {
  const auto summary = VerifyFrame(frame.bytes, nullptr);
  if (!summary.ok() || summary->key != key) intact_ = false;
  MutexLock lock(&mu_);
  frames_[key] = std::make_shared<const std::string>(AsText(frame.bytes));
  return OkStatus();
}

EndpointOptions ServerOptions() {
  EndpointOptions options;
  options.listen = "tcp://127.0.0.1:0";
  options.identity.model = MakeModel()->fingerprint();
  return options;
}

Server::Server(const EndpointOptions& options) {
  auto endpoint = Endpoint::Create(runtime_, options);
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  endpoint_ = *endpoint;
  for (uint32_t i = 0; i < 8; ++i) {
    const std::string frame = MakeFrame(i);
    EXPECT_TRUE(store_->Put(MakeKey(i), {AsBytes(frame), nullptr}).ok());
  }
  EXPECT_TRUE(endpoint_->Serve(store_).ok());
}

uint16_t Server::port() const {
  uint32_t port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(endpoint_->url().substr(endpoint_->url().rfind(':') + 1), &port));
  return static_cast<uint16_t>(port);
}

void Server::ExpectGood() {
  Client client;
  std::vector<Key> keys;
  for (uint32_t i = 0; i < 8; ++i) keys.push_back(MakeKey(i));
  for (const kvt_status_t status : client.Pull(endpoint_->url(), keys, 1 << 16)) EXPECT_EQ(status, KVT_OK);
}

Client::Client(uint32_t stall_ms) {
  EndpointOptions options = ServerOptions();
  options.listen.clear();
  options.identity.stall_ms = stall_ms;
  endpoint_ = *Endpoint::Create(runtime_, options);
}

kvt_status_t Client::Connect(const std::string& url) {
  return CodeOf(endpoint_->Connect(url, Soon()).status());
}

std::vector<kvt_status_t> Client::Pull(const std::string& url, const std::vector<Key>& keys, size_t stride) {
  std::vector<kvt_status_t> statuses(keys.size(), 1);
  const auto remote = endpoint_->Connect(url, Soon());
  if (!remote.ok()) return std::vector<kvt_status_t>(keys.size(), CodeOf(remote.status()));
  std::vector<uint8_t> memory(keys.size() * stride);
  std::vector<uint64_t> lengths(keys.size());
  const auto operation =
      (*remote)->Submit(std::make_shared<PullOp>(keys, memory.data(), stride,
                                                 Results{statuses.data(), lengths.data(), keys.size()}),
                        Soon());
  if (!operation.ok()) return std::vector<kvt_status_t>(keys.size(), CodeOf(operation.status()));
  EXPECT_TRUE(endpoint_->operations().Wait(*operation, Soon()).ok());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i] != KVT_OK) continue;
    const auto summary = VerifyFrame(Bytes(&memory[i * stride], lengths[i]), nullptr);
    EXPECT_TRUE(summary.ok() && summary->key == keys[i]) << i;
  }
  (*remote)->Disconnect();
  return statuses;
}

int ListenRaw(uint16_t* port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(fd, 16), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  *port = ntohs(address.sin_port);
  return fd;
}

net::Fd ConnectRaw(uint16_t port) {
  net::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

void RawClient::Send(const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    pollfd waiting = {fd_.get(), POLLOUT, 0};
    if (poll(&waiting, 1, kPatienceMs) != 1) return;
    const ssize_t n = send(fd_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

bool RawClient::ReadExactly(void* to, size_t size) {
  for (size_t done = 0; done < size;) {
    if (!Readable(fd_.get(), kPatienceMs)) return false;
    const ssize_t n = recv(fd_.get(), static_cast<char*>(to) + done, size - done, 0);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

bool RawClient::ReadMessage(net::Header* header, std::string* control) {
  uint8_t head[net::kHeaderBytes];
  if (!ReadExactly(head, sizeof head)) return false;
  const auto decoded = net::DecodeHeader(Bytes(head, sizeof head), UINT64_MAX);
  if (!decoded.ok()) return false;
  *header = *decoded;
  control->resize(header->control_bytes);
  if (!ReadExactly(control->data(), control->size())) return false;
  std::string payload(header->payload_bytes, '\0');
  return ReadExactly(payload.data(), payload.size());
}

Status RawClient::ReadGoodbye() {
  net::Header header;
  std::string control;
  while (ReadMessage(&header, &control)) {
    if (header.type != net::MessageType::kGoodbye) continue;
    const auto goodbye = ReadControl<wire::Goodbye>(AsBytes(control), "Goodbye");
    if (!goodbye.ok()) return goodbye.status();
    return Error((*goodbye)->code(), (*goodbye)->text()->str());
  }
  return Error(KVT_ERR_PEER_DEAD, "no Goodbye came");
}

bool RawClient::AtEnd() {
  char buffer[4096];
  while (Readable(fd_.get(), kPatienceMs)) {
    const ssize_t n = recv(fd_.get(), buffer, sizeof buffer, 0);
    if (n <= 0) return true;
  }
  return false;
}

void RawClient::DrainBriefly() {
  char buffer[65536];
  while (Readable(fd_.get(), 1)) {
    if (recv(fd_.get(), buffer, sizeof buffer, 0) <= 0) return;
  }
}

FlippingProxy::FlippingProxy(uint16_t port, bool to_server, size_t at)
    : server_port_(port), to_server_(to_server), at_(at) {
  listener_ = ListenRaw(&port_);
  thread_ = std::thread([this] { Run(); });
}

FlippingProxy::~FlippingProxy() {
  stop_ = true;
  thread_.join();
  close(listener_);
}

void FlippingProxy::Run() {
  while (!stop_ && !Readable(listener_, 2)) {
  }
  if (stop_) return;
  const net::Fd client(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
  const net::Fd server = ConnectRaw(server_port_);
  while (!stop_) {
    pollfd both[2] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}};
    if (poll(both, 2, 2) < 1) continue;
    for (int from = 0; from < 2; ++from) {
      if (both[from].revents == 0) continue;
      char buffer[8192];
      const ssize_t n = recv(both[from].fd, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      if (to_server_ == (from == 0)) {
        const size_t begin = bytes_;
        if (at_ >= begin && at_ < begin + static_cast<size_t>(n)) buffer[at_ - begin] ^= 0x10;
        bytes_ += static_cast<size_t>(n);
      }
      if (send(both[1 - from].fd, buffer, static_cast<size_t>(n), MSG_NOSIGNAL) != n) return;
    }
  }
}

}  // namespace kvt::transfer
