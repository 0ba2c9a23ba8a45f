// crossover_mbit: the highest link speed at which transform at 16 still beats raw from end to end here.
//
// The way is pipelined with one core a side: the sender encodes and sends, the link carries, the receiver
// receives and decodes, all at once, so a byte of KV takes as long as the slowest of the three. With e and d
// the seconds that a codec takes for a byte of KV, w those of the wire (a pull over loopback, whose two sides
// overlap, so it is put to each of them in full), r the codec's whole ratio and L the link's bytes a second:
//     T(L) = max(e + w / r, 1 / (L r), d + w / r)
// While the link is the slowest part of raw, raw takes 1 / L; transform beats it down to the time of its own
// slower side. So the crossover is 1 / max(e + w / r, d + w / r) of transform, unless raw's own sides are
// slower than that: then no link is fast enough for raw.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "bench/bench.h"
#include "bench/bench_transform_kv.h"

namespace kvt::bench {
namespace {

constexpr int kRounds = 7;
constexpr int64_t kLong = 60'000;

// A frame in a cache behind a node, and a client that pulls it over loopback.
class Wire {
 public:
  Wire(const TransformKv& kv, const std::vector<uint8_t>& frame, size_t bytes)
      : key_(kv.spec()->key), room_(bytes) {
    kvt_runtime_options_t threads;
    kvt_runtime_options_init(&threads, sizeof threads);
    threads.threads = 1;
    Check(kvt_runtime_create(&threads, &server_), "kvt_runtime_create");
    Check(kvt_runtime_create(&threads, &client_), "kvt_runtime_create");
    const char place[] = "mem:";
    Check(kvt_cache_open(server_, place, std::strlen(place), &cache_), "kvt_cache_open");
    const uint64_t length = bytes;
    kvt_status_t result = KVT_OK;
    uint64_t operation = 0;
    Check(kvt_cache_submit_put(cache_, key_, 1, frame.data(), &length, &result, kLong, &operation),
          "kvt_cache_submit_put");
    Check(kvt_cache_wait(cache_, operation, kLong, nullptr), "kvt_cache_wait");
    const kvt_node_t node = Open(server_, kv.model(), "tcp://127.0.0.1:0");
    Check(kvt_node_serve(node, cache_), "kvt_node_serve");
    char url[128];
    size_t url_len = 0;
    Check(kvt_node_url(node, url, sizeof url, &url_len), "kvt_node_url");
    puller_ = Open(client_, kv.model(), nullptr);
    Check(kvt_node_connect(puller_, url, url_len, kLong, &peer_), "kvt_node_connect");
  }
  ~Wire() {
    for (const kvt_node_t node : nodes_) kvt_node_destroy(node);
    kvt_cache_destroy(cache_);
    kvt_runtime_destroy(client_);
    kvt_runtime_destroy(server_);
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  double Pull() {
    return Seconds([&] {
      uint64_t length = 0, operation = 0;
      kvt_status_t result = KVT_OK;
      Check(kvt_peer_submit_pull(peer_, key_, 1, room_.data(), room_.size(), &length, &result, kLong,
                                 &operation),
            "kvt_peer_submit_pull");
      Check(kvt_node_wait(puller_, operation, kLong, nullptr), "kvt_node_wait");
    });
  }

 private:
  kvt_node_t Open(kvt_runtime_t runtime, kvt_model_t model, const char* listen) {
    kvt_node_options_t options;
    kvt_node_options_init(&options, sizeof options);
    options.listen = listen;
    options.listen_len = listen == nullptr ? 0 : std::strlen(listen);
    options.model = model;
    kvt_node_t node = 0;
    Check(kvt_node_open(runtime, &options, &node), "kvt_node_open");
    nodes_.push_back(node);
    return node;
  }

  const uint8_t* key_;  // of the frame
  std::vector<uint8_t> room_;
  std::vector<kvt_node_t> nodes_;
  kvt_runtime_t server_ = 0, client_ = 0;
  kvt_cache_t cache_ = 0;
  kvt_node_t puller_ = 0;
  kvt_peer_t peer_ = 0;
};

// Seconds for a byte of KV.
struct Path {
  Sample encode, decode;  // for all of the KV
  double ratio = 0;
  double side(double wire) const {
    return std::max(encode.median, decode.median) / static_cast<double>(kKvBytes) + wire / ratio;
  }
};

Path Measure(TransformCodec& codec) {
  std::vector<double> encode, decode;
  for (int round = 0; round <= kRounds; ++round) {
    const double encoded = codec.Encode(), decoded = codec.Decode();
    if (round == 0) continue;  // warms up
    encode.push_back(encoded);
    decode.push_back(decoded);
  }
  return {Summarise(encode), Summarise(decode),
          static_cast<double>(kKvBytes) / static_cast<double>(codec.frame_bytes())};
}

double Mbit(double seconds_a_byte) { return 8e-6 / seconds_a_byte; }

std::vector<Bar> Crossover() {
  TransformKv kv;
  const std::vector<uint8_t>& profile = CalibrateProfile(kv);
  kv.Fill(7);
  TransformCodec raw_codec(kv, "raw", {}), transform_codec(kv, "transform", profile);
  const Path raw = Measure(raw_codec), transform = Measure(transform_codec);
  Wire connection(kv, raw_codec.frame(), raw_codec.frame_bytes());
  std::vector<double> pulls;
  for (int round = 0; round <= kRounds; ++round) {
    const double seconds = connection.Pull();
    if (round > 0) pulls.push_back(seconds);
  }
  const Sample pull = Summarise(pulls);
  const double wire = pull.median / static_cast<double>(kKvBytes);
  const double ours = transform.side(wire), theirs = raw.side(wire);
  Bar bar;
  bar.name = "crossover_mbit";
  bar.value = Mbit(ours);
  bar.unit = "Mbit/s";
  bar.peer = Peer{"raw's own sides (Mbit/s)", Mbit(theirs)};
  bar.rounds = kRounds;
  bar.spread = std::max({transform.encode.spread, transform.decode.spread, pull.spread});
  const auto speed = [](const Sample& sample) { return Mbit(sample.median / static_cast<double>(kKvBytes)); };
  char note[400];
  std::snprintf(
      note, sizeof note,
      "1 / max(e + w/r, d + w/r) of KV: e %.0f, d %.0f, w %.0f Mbit/s, whole ratio r %.2f; raw e %.0f, "
      "d %.0f%s",
      speed(transform.encode), speed(transform.decode), Mbit(wire), transform.ratio, speed(raw.encode),
      speed(raw.decode), ours < theirs ? "; raw's sides are slower: transform wins at any speed" : "");
  bar.note = note;
  return {bar};
}

KVT_BENCH(transform, Crossover);

}  // namespace
}  // namespace kvt::bench
