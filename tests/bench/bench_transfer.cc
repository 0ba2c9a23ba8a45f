// tcp_1m: pulls of 1 MiB raw frames, checksums on, against a bare send/recv loop over the same working set.
// tcp_64k_peer: one pull of 1,000 blocks of 64 KiB against Mooncake's transfer_engine_bench (KVT_BENCH_PEER).
//
// The serving side is a process of its own, on one processor; this process is on another.
#include <arpa/inet.h>
#include <kvartet/kvartet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "bench/bench.h"
#include "bench/bench_transfer_peer.h"

namespace kvt::bench {
namespace {

constexpr int64_t kLong = 120'000;
constexpr uint32_t kHeads = 8, kDim = 64;
constexpr uint64_t kTokenBytes = 2 * kHeads * kDim * 2;
constexpr uint64_t kMiB = 1 << 20;

void Pin(int cpu) {
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu % cpus), &set);
  sched_setaffinity(0, sizeof set, &set);
}

// Gives this process its processors back.
class Pinned {
 public:
  explicit Pinned(int cpu) {
    sched_getaffinity(0, sizeof before_, &before_);
    Pin(cpu);
  }
  ~Pinned() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

kvt_model_t MakeModel() {
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.model_id = reinterpret_cast<const uint8_t*>("bench");
  options.model_id_len = 5;
  options.layers = 1;
  options.kv_heads = kHeads;
  options.k_dim = options.v_dim = kDim;
  kvt_model_t model = 0;
  Check(kvt_model_create(&options, &model), "kvt_model_create");
  return model;
}

std::vector<uint8_t> MakeKeys(uint32_t count) {
  std::vector<uint8_t> keys(count * KVT_KEY_BYTES, 7);
  for (uint32_t i = 0; i < count; ++i) std::memcpy(&keys[i * KVT_KEY_BYTES], &i, sizeof i);
  return keys;
}

// Puts `count` raw frames of `payload` bytes of KV into the cache.
void Fill(kvt_cache_t cache, kvt_model_t model, uint32_t count, uint64_t payload) {
  kvt_codec_options_t codec_options;
  kvt_codec_options_init(&codec_options, sizeof codec_options);
  kvt_codec_t codec = 0;
  Check(kvt_codec_create(model, &codec_options, &codec), "kvt_codec_create");
  const uint64_t tokens = payload / kTokenBytes;
  std::vector<uint16_t> rows(payload / 2, 0x3c00);
  void* bases[2] = {rows.data(), rows.data() + rows.size() / 2};
  kvt_view_t view;
  kvt_view_init(&view, sizeof view);
  view.element = KVT_ELEMENT_F16;
  view.layer_end = 1;
  view.head_end = kHeads;
  view.bases = bases;
  view.base_count = 2;
  view.tokens = tokens;
  for (int stream = 0; stream < 2; ++stream) {
    view.token_stride[stream] = kHeads * kDim * 2;
    view.head_stride[stream] = kDim * 2;
    view.element_stride[stream] = 2;
  }
  const std::vector<uint8_t> keys = MakeKeys(count);
  std::vector<uint8_t> frame(payload + 65536);
  for (uint32_t i = 0; i < count; ++i) {
    kvt_frame_spec_t spec;
    kvt_frame_spec_init(&spec, sizeof spec);
    spec.token_count = tokens;
    std::memcpy(spec.key, &keys[i * KVT_KEY_BYTES], KVT_KEY_BYTES);
    std::memcpy(rows.data(), &i, sizeof i);
    size_t size = 0;
    Check(kvt_codec_encode(codec, &view, &spec, frame.data(), frame.size(), &size, nullptr),
          "kvt_codec_encode");
    const uint64_t length = size;
    kvt_status_t result = KVT_OK;
    uint64_t operation = 0;
    Check(kvt_cache_submit_put(cache, spec.key, 1, frame.data(), &length, &result, kLong, &operation),
          "kvt_cache_submit_put");
    Check(kvt_cache_wait(cache, operation, kLong, nullptr), "kvt_cache_wait");
  }
  kvt_codec_destroy(codec);
}

kvt_node_t OpenNode(kvt_runtime_t runtime, kvt_model_t model, const char* listen) {
  kvt_node_options_t options;
  kvt_node_options_init(&options, sizeof options);
  options.listen = listen;
  options.listen_len = listen == nullptr ? 0 : std::strlen(listen);
  options.model = model;
  options.stall_ms = 60'000;
  kvt_node_t node = 0;
  Check(kvt_node_open(runtime, &options, &node), "kvt_node_open");
  return node;
}

// The bare loop's ends: whole blocks by blocking send and recv, nothing else.
void SendAll(int fd, const uint8_t* data, uint64_t size, uint64_t step) {
  for (uint64_t done = 0; done < size;) {
    const ssize_t n = send(fd, data + done, std::min(step, size - done), MSG_NOSIGNAL);
    if (n <= 0) std::exit(0);
    done += static_cast<uint64_t>(n);
  }
}
void ReceiveAll(int fd, uint8_t* data, uint64_t size, uint64_t step) {
  for (uint64_t done = 0; done < size;) {
    const ssize_t n = recv(fd, data + done, std::min(step, size - done), 0);
    if (n <= 0) Fail("the bare sender went away");
    done += static_cast<uint64_t>(n);
  }
}

int ListenBare(uint16_t* port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 1) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    Fail("cannot listen on loopback");
  *port = ntohs(address.sin_port);
  return fd;
}

int ConnectBare(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    Fail("cannot connect to the bare sender");
  return fd;
}

// The serving process: a node with `count` frames, and a bare sender of as many bytes that starts at each
// byte it gets. Ends when the bare connection does.
class Server {
 public:
  Server(uint32_t count, uint64_t payload) {
    int pipe_fds[2];
    if (pipe(pipe_fds) != 0) Fail("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      close(pipe_fds[0]);
      Serve(count, payload, pipe_fds[1]);
      std::exit(0);
    }
    close(pipe_fds[1]);
    FILE* in = fdopen(pipe_fds[0], "r");
    char url[256];
    unsigned port = 0;
    if (std::fscanf(in, "%255s %u", url, &port) != 2) Fail("the serving process did not start");
    std::fclose(in);
    url_ = url;
    bare_ = ConnectBare(static_cast<uint16_t>(port));
  }
  ~Server() {
    close(bare_);
    waitpid(pid_, nullptr, 0);
  }
  const std::string& url() const { return url_; }
  int bare() const { return bare_; }

 private:
  static void Serve(uint32_t count, uint64_t payload, int out) {
    Pin(0);
    kvt_runtime_t runtime = 0;
    Check(kvt_runtime_create(nullptr, &runtime), "kvt_runtime_create");
    const kvt_model_t model = MakeModel();
    kvt_cache_t cache = 0;
    Check(kvt_cache_open(runtime, "mem:", 4, &cache), "kvt_cache_open");
    Fill(cache, model, count, payload);
    const kvt_node_t node = OpenNode(runtime, model, "tcp://127.0.0.1:0");
    Check(kvt_node_serve(node, cache), "kvt_node_serve");
    char url[256] = {};
    Check(kvt_node_url(node, url, sizeof url - 1, nullptr), "kvt_node_url");
    uint16_t port = 0;
    const int listener = ListenBare(&port);
    dprintf(out, "%s %u\n", url, port);
    close(out);
    const std::vector<uint8_t> data(count * payload, 1);
    const int fd = accept(listener, nullptr, nullptr);
    char go;
    while (recv(fd, &go, 1, 0) == 1) SendAll(fd, data.data(), data.size(), payload);
    kvt_node_destroy(node);
    kvt_cache_destroy(cache);
    kvt_runtime_destroy(runtime);
  }

  pid_t pid_ = 0;
  std::string url_;
  int bare_ = -1;
};

// The pulling side over `count` frames.
class Puller {
 public:
  Puller(const std::string& url, uint32_t count, uint64_t payload)
      : count_(count), stride_(payload + 4096), keys_(MakeKeys(count)), lengths_(count), results_(count) {
    Check(kvt_runtime_create(nullptr, &runtime_), "kvt_runtime_create");
    model_ = MakeModel();
    node_ = OpenNode(runtime_, model_, nullptr);
    Check(kvt_node_connect(node_, url.data(), url.size(), kLong, &peer_), "kvt_node_connect");
    memory_.assign(count * stride_, 0);
  }
  ~Puller() {
    kvt_node_destroy(node_);
    kvt_model_destroy(model_);
    kvt_runtime_destroy(runtime_);
  }
  Puller(const Puller&) = delete;
  Puller& operator=(const Puller&) = delete;
  double Pull() {
    return Seconds([&] {
      uint64_t operation = 0;
      Check(kvt_peer_submit_pull(peer_, keys_.data(), count_, memory_.data(), stride_, lengths_.data(),
                                 results_.data(), kLong, &operation),
            "kvt_peer_submit_pull");
      Check(kvt_node_wait(node_, operation, kLong, nullptr), "kvt_node_wait");
    });
  }
  uint8_t* memory() { return memory_.data(); }

 private:
  const uint32_t count_;
  const uint64_t stride_;
  const std::vector<uint8_t> keys_;
  std::vector<uint64_t> lengths_;
  std::vector<kvt_status_t> results_;
  std::vector<uint8_t> memory_;
  kvt_runtime_t runtime_ = 0;
  kvt_model_t model_ = 0;
  kvt_node_t node_ = 0;
  kvt_peer_t peer_ = 0;
};

std::vector<Bar> Tcp1m() {
  constexpr uint32_t kCount = 256;
  constexpr int kRounds = 9;
  const Server server(kCount, kMiB);
  const Pinned pinned(1);
  Puller puller(server.url(), kCount, kMiB);
  const Pair pair = Interleave(
      kRounds, [&] { return puller.Pull(); },
      [&] {
        return Seconds([&] {
          if (send(server.bare(), "g", 1, MSG_NOSIGNAL) != 1) Fail("the bare sender went away");
          ReceiveAll(server.bare(), puller.memory(), kCount * kMiB, kMiB);
        });
      });
  const double bytes = static_cast<double>(kCount * kMiB);
  char note[256];
  std::snprintf(note, sizeof note, "256 x 1 MiB: %.2f GB/s, bare loop %.2f GB/s, iperf3 %s",
                bytes / pair.ours.median / 1e9, bytes / pair.peer.median / 1e9, Iperf3().c_str());
  return {{.name = "tcp_1m",
           .value = pair.peer_by_ours.median,
           .unit = "x bare send/recv",
           .op = ">=",
           .bar = 0.7,
           .peer = Peer{"bare send/recv loop, GB/s", bytes / pair.peer.median / 1e9},
           .rounds = kRounds,
           .spread = pair.peer_by_ours.spread,
           .note = note}};
}
KVT_BENCH(core, Tcp1m);

std::vector<Bar> Tcp64kPeer() {
  constexpr uint32_t kCount = 1000;
  constexpr uint64_t kBlock = 64 << 10;
  constexpr int kRounds = 3;
  const Server server(kCount, kBlock);
  const Pinned pinned(1);
  Puller puller(server.url(), kCount, kBlock);
  const double bytes = static_cast<double>(kCount * kBlock);
  const auto ours = [&] {
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) times.push_back(puller.Pull());
    return bytes / Summarise(times).median / 1e9;
  };
  Bar bar{.name = "tcp_64k_peer", .unit = "x Mooncake", .op = ">=", .bar = 2, .rounds = kRounds};
  std::vector<double> rates, peers, ratios;
  std::string best;
  puller.Pull();
  for (int round = 0; round < kRounds; ++round) {
    rates.push_back(ours());
    const MooncakeRate peer = Mooncake64k();
    if (peer.gb_per_s <= 0) break;
    peers.push_back(peer.gb_per_s);
    best = peer.settings;
    rates.back() = (rates.back() + ours()) / 2;
    ratios.push_back(rates.back() / peer.gb_per_s);
  }
  const Sample rate = Summarise(rates);
  char note[256];
  if (ratios.empty()) {
    bar.value = rate.median;
    bar.unit = "GB/s";
    bar.op = "";
    bar.rounds = 1;
    bar.spread = rate.spread;
    bar.peer = Peer{"Mooncake transfer_engine_bench (absent)", 0};
    std::snprintf(note, sizeof note, "1,000 x 64 KiB in one call: %.2f GB/s; the peer is not installed",
                  rate.median);
  } else {
    const Sample ratio = Summarise(ratios), peer = Summarise(peers);
    bar.value = ratio.median;
    bar.spread = ratio.spread;
    bar.peer = Peer{"Mooncake transfer_engine_bench, GB/s", peer.median};
    std::snprintf(note, sizeof note, "1,000 x 64 KiB in one call: %.2f GB/s; Mooncake's best (%s): %.2f GB/s",
                  rate.median, best.c_str(), peer.median);
  }
  bar.note = note;
  return {bar};
}
KVT_BENCH(core, Tcp64kPeer);

}  // namespace
}  // namespace kvt::bench
