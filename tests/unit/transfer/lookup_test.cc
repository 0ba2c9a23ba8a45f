// Hosts by name: what a connect does while name servers are silent, and what their answers mean.
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <atomic>
#include <fstream>
#include <future>
#include <thread>

#include "absl/strings/match.h"
#include "unit/cache/child.h"
#include "unit/transfer/fixture.h"

namespace kvt::transfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A name server on loopback. Silent, or one that answers every question in one way.
class NameServer {
 public:
  enum class Answer { kNone, kLoopback, kElsewhere, kNoSuchName, kFailure };

  explicit NameServer(Answer answer) : answer_(answer), fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    place_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~NameServer() {
    stop_ = true;
    thread_.join();
  }
  const std::string& place() const { return place_; }
  void AwaitQuestion() const {
    while (questions_ == 0) std::this_thread::sleep_for(milliseconds(1));
  }

 private:
  void Run() {
    while (!stop_) {
      pollfd waiting = {fd_.get(), POLLIN, 0};
      if (poll(&waiting, 1, 5) != 1) continue;
      char question[512];
      sockaddr_in from = {};
      socklen_t size = sizeof from;
      const ssize_t got =
          recvfrom(fd_.get(), question, sizeof question, 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 12) continue;
      ++questions_;
      if (answer_ == Answer::kNone) continue;
      const std::string reply = Reply(std::string(question, static_cast<size_t>(got)));
      sendto(fd_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
  }
  // RFC 1035: the question again, and for an IPv4 address (type A) one record.
  std::string Reply(std::string message) const {
    size_t end = 12;
    while (end < message.size() && message[end] != 0) end += static_cast<uint8_t>(message[end]) + 1u;
    end += 5;  // the root label, type and class
    if (end > message.size()) return "";
    const bool asks_a = message[end - 3] == 1;
    message.resize(end);  // without additional records
    const bool record = asks_a && (answer_ == Answer::kLoopback || answer_ == Answer::kElsewhere);
    message[2] = static_cast<char>(0x81);
    message[3] = static_cast<char>(answer_ == Answer::kNoSuchName ? 0x83
                                   : answer_ == Answer::kFailure  ? 0x82
                                                                  : 0x80);
    message[7] = record ? 1 : 0;
    message[9] = message[11] = 0;
    if (!record) return message;
    const unsigned char answer[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4};
    message.append(reinterpret_cast<const char*>(answer), sizeof answer);
    const unsigned char loopback[] = {127, 0, 0, 1}, elsewhere[] = {192, 0, 2, 1};
    message.append(reinterpret_cast<const char*>(answer_ == Answer::kLoopback ? loopback : elsewhere), 4);
    return message;
  }

  const Answer answer_;
  const net::Fd fd_;
  std::string place_;
  std::atomic<bool> stop_{false};
  std::atomic<int> questions_{0};
  std::thread thread_;
};

std::shared_ptr<Endpoint> ClientOf(std::shared_ptr<Runtime> runtime, const std::string& servers) {
  EndpointOptions options = ServerOptions();
  options.listen.clear();
  options.name_servers = servers;
  auto endpoint = Endpoint::Create(std::move(runtime), options);
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *endpoint;
}

constexpr char kUrl[] = "tcp://peer.kvartet.test:7400";

TEST(Lookup, ASilentNameServerHoldsUpTheConnectToItsDeadlineOnly) {
  const NameServer names(NameServer::Answer::kNone);
  const auto client = ClientOf(MakeRuntime(1), names.place());
  const auto begin = std::chrono::steady_clock::now();
  const Status status = client->Connect(kUrl, Deadline::After(milliseconds(200))).status();
  EXPECT_EQ(CodeOf(status), KVT_ERR_TIMEOUT) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "looked up")) << status;
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(200));
  client->Shutdown();
}

TEST(Lookup, DestroyEndsAConnectThatLooksUp) {
  const NameServer names(NameServer::Answer::kNone);
  const auto client = ClientOf(MakeRuntime(1), names.place());
  auto connect =
      std::async(std::launch::async, [&] { return CodeOf(client->Connect(kUrl, Soon()).status()); });
  names.AwaitQuestion();
  auto shut = std::async(std::launch::async, [&] { client->Shutdown(); });
  EXPECT_EQ(shut.wait_for(seconds(20)), std::future_status::ready) << "destroy waits for a name server";
  ASSERT_EQ(connect.wait_for(seconds(20)), std::future_status::ready) << "the connect goes on";
  EXPECT_EQ(connect.get(), KVT_ERR_CLOSED);
}

TEST(Lookup, NoWorkerIsHeldUp) {
  const NameServer names(NameServer::Answer::kNone);
  const auto runtime = MakeRuntime(1);
  const auto client = ClientOf(runtime, names.place());
  auto connect =
      std::async(std::launch::async, [&] { return CodeOf(client->Connect(kUrl, Soon()).status()); });
  names.AwaitQuestion();
  // The runtime's only worker, and the node's other peers, go on.
  auto cache = *Cache::Open(runtime, "mem:");
  const std::string frame = MakeFrame(0);
  const uint64_t length = frame.size();
  const auto keys = MakeKeys(0, 1);
  kvt_status_t result = 77;
  const auto put = cache->SubmitPut(keys, reinterpret_cast<const uint8_t*>(frame.data()), &length, &result,
                                    Deadline::After(seconds(20)));
  ASSERT_TRUE(put.ok());
  EXPECT_TRUE(cache->Wait(*put, Deadline::After(seconds(20)), nullptr).ok());
  Server server(ServerOptions());
  const auto other =
      client->Connect(absl::StrCat("tcp://127.0.0.1:", server.port()), Deadline::After(seconds(20)));
  EXPECT_TRUE(other.ok()) << other.status();
  client->Shutdown();
  EXPECT_EQ(connect.get(), KVT_ERR_CLOSED);
}

TEST(Lookup, AnAnswerIsConnectedTo) {
  Server server(ServerOptions());
  const NameServer names(NameServer::Answer::kLoopback);
  const auto client = ClientOf(MakeRuntime(1), names.place());
  for (int i = 0; i < 3; ++i) {
    const auto remote = client->Connect(absl::StrCat("tcp://peer.kvartet.test:", server.port()), Soon());
    EXPECT_TRUE(remote.ok()) << remote.status();
  }
  client->Shutdown();
}

TEST(Lookup, AnswersThatDoNotHelpHaveTheirOwnStatus) {
  const struct {
    NameServer::Answer answer;
    kvt_status_t status;
    const char* word;
  } cases[] = {
      {NameServer::Answer::kNoSuchName, KVT_ERR_INVALID_ARGUMENT, "was not found"},
      {NameServer::Answer::kElsewhere, KVT_ERR_INVALID_ARGUMENT, "insecure=1"},
      {NameServer::Answer::kFailure, KVT_ERR_PEER_DEAD, "was not looked up"},
  };
  for (const auto& c : cases) {
    const NameServer names(c.answer);
    const auto client = ClientOf(MakeRuntime(1), names.place());
    const Status status = client->Connect(kUrl, Soon()).status();
    EXPECT_EQ(CodeOf(status), c.status) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), c.word)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "peer.kvartet.test")) << status;
    client->Shutdown();
  }
}

// Connects by a name that only the hosts file has; returns what went wrong.
std::string ConnectByHostsFile(const std::string& hosts) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return absl::StrCat("this test needs to mount a file; unshare: ", strerror(errno));
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount(hosts.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) {
    return absl::StrCat("this test needs to mount a file; mount: ", strerror(errno));
  }
  Server server(ServerOptions());
  const NameServer names(NameServer::Answer::kNoSuchName);
  const auto client = ClientOf(MakeRuntime(1), names.place());
  const auto remote = client->Connect(absl::StrCat("tcp://only-in-hosts:", server.port()), Soon());
  client->Shutdown();
  return remote.ok() ? "" : remote.status().ToString();
}

TEST(Lookup, TheHostsFileCounts) {
  TempDir dir;
  const std::string hosts = dir.path() + "/hosts";
  std::ofstream(hosts) << "127.0.0.1 localhost\n127.0.0.1 only-in-hosts\n";
  EXPECT_EQ(Child([&](int) { return ConnectByHostsFile(hosts); }).Join(), "");
}

}  // namespace
}  // namespace kvt::transfer
