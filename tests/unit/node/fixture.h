// What the node's tests share: sides with a runtime, a cache and a node, and raw frames of any size. They use
// the C ABI as a host does.
#ifndef KVARTET_TESTS_UNIT_NODE_FIXTURE_H_
#define KVARTET_TESTS_UNIT_NODE_FIXTURE_H_

#include <gtest/gtest.h>
#include <kvartet/kvartet.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace kvt_test {

inline constexpr int64_t kLong = 60'000;
inline constexpr uint32_t kHeads = 8, kHeadDim = 64;
// Raw bytes of K and V of a token.
inline constexpr size_t kTokenBytes = 2 * kHeads * kHeadDim * 2;

inline std::string LastError() {
  char text[KVT_ERROR_TEXT_MAX];
  size_t size = 0;
  kvt_last_error(text, sizeof text, &size);
  return std::string(text, size);
}

#define KVT_ASSERT_OK(call) ASSERT_EQ(call, KVT_OK) << ::kvt_test::LastError()
#define KVT_EXPECT_OK(call) EXPECT_EQ(call, KVT_OK) << ::kvt_test::LastError()

inline kvt_model_t MakeModel(const std::string& id = "model-a") {
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.model_id = reinterpret_cast<const uint8_t*>(id.data());
  options.model_id_len = id.size();
  options.layers = 4;
  options.kv_heads = kHeads;
  options.k_dim = options.v_dim = kHeadDim;
  options.element = KVT_ELEMENT_F16;
  kvt_model_t model = 0;
  EXPECT_EQ(kvt_model_create(&options, &model), KVT_OK) << LastError();
  return model;
}

inline std::vector<uint8_t> MakeKey(uint32_t number) {
  std::vector<uint8_t> key(KVT_KEY_BYTES);
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(number * 31 + i * 7 + 1);
  std::memcpy(key.data(), &number, sizeof number);
  return key;
}

inline std::vector<uint8_t> MakeKeys(uint32_t first, size_t count) {
  std::vector<uint8_t> keys;
  for (uint32_t i = 0; i < count; ++i) {
    const auto key = MakeKey(first + i);
    keys.insert(keys.end(), key.begin(), key.end());
  }
  return keys;
}

// A raw frame of one layer of `tokens` tokens; rows depend on `seed`.
inline std::vector<uint8_t> MakeFrame(kvt_model_t model, const std::vector<uint8_t>& key, uint32_t tokens,
                                      uint32_t seed, uint32_t layer = 0, uint8_t ns = 0) {
  kvt_codec_options_t codec_options;
  kvt_codec_options_init(&codec_options, sizeof codec_options);
  kvt_codec_t codec = 0;
  EXPECT_EQ(kvt_codec_create(model, &codec_options, &codec), KVT_OK) << LastError();
  std::vector<uint16_t> rows(tokens * kTokenBytes / 2);
  uint32_t state = seed * 2654435761u + 12345;
  for (uint16_t& row : rows) {
    state = state * 1664525u + 1013904223u;
    row = static_cast<uint16_t>(0x2000 | (state >> 19));
  }
  void* bases[2] = {rows.data(), rows.data() + rows.size() / 2};
  kvt_view_t view;
  kvt_view_init(&view, sizeof view);
  view.element = KVT_ELEMENT_F16;
  view.layer_begin = layer;
  view.layer_end = layer + 1;
  view.head_end = kHeads;
  view.bases = bases;
  view.base_count = 2;
  for (int stream = 0; stream < 2; ++stream) {
    view.token_stride[stream] = kHeads * kHeadDim * 2;
    view.head_stride[stream] = kHeadDim * 2;
    view.element_stride[stream] = 2;
  }
  view.tokens = tokens;
  kvt_frame_spec_t spec;
  kvt_frame_spec_init(&spec, sizeof spec);
  spec.token_count = tokens;
  std::memcpy(spec.key, key.data(), KVT_KEY_BYTES);
  std::memset(spec.namespace_digest, ns, KVT_NAMESPACE_DIGEST_BYTES);
  uint64_t bound = 0;
  EXPECT_EQ(kvt_codec_bound(codec, &view, &spec, &bound), KVT_OK) << LastError();
  std::vector<uint8_t> frame(bound);
  size_t needed = 0;
  EXPECT_EQ(kvt_codec_encode(codec, &view, &spec, frame.data(), frame.size(), &needed, nullptr), KVT_OK)
      << LastError();
  frame.resize(needed);
  kvt_codec_destroy(codec);
  return frame;
}

// One process's half of a transfer.
struct Side {
  struct Setup {
    std::string listen;
    std::string model_id = "model-a";
    uint8_t ns = 0;
    uint32_t stall_ms = 2000;
    uint32_t max_connections = 64;
    uint64_t max_frame_bytes = uint64_t{1} << 30;
    std::string cache = "mem:";
    uint64_t memory_limit = 0;
    bool serve = true;
  };
  explicit Side(const Setup& setup) {
    kvt_runtime_options_t runtime_options;
    kvt_runtime_options_init(&runtime_options, sizeof runtime_options);
    runtime_options.memory_limit_bytes = setup.memory_limit;
    EXPECT_EQ(kvt_runtime_create(&runtime_options, &runtime), KVT_OK) << LastError();
    model = MakeModel(setup.model_id);
    opened = OpenNode(setup);
    if (opened != KVT_OK || !setup.serve) return;
    EXPECT_EQ(kvt_cache_open(runtime, setup.cache.data(), setup.cache.size(), &cache), KVT_OK) << LastError();
    EXPECT_EQ(kvt_node_serve(node, cache), KVT_OK) << LastError();
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() {
    kvt_node_destroy(node);
    kvt_cache_destroy(cache);
    kvt_model_destroy(model);
    EXPECT_EQ(kvt_runtime_close(runtime, kLong), KVT_OK) << LastError();
    kvt_runtime_destroy(runtime);
  }

  kvt_status_t OpenNode(const Setup& setup) {
    kvt_node_options_t options;
    kvt_node_options_init(&options, sizeof options);
    if (!setup.listen.empty()) {
      options.listen = setup.listen.data();
      options.listen_len = setup.listen.size();
    }
    options.model = model;
    options.stall_ms = setup.stall_ms;
    options.max_connections = setup.max_connections;
    options.max_frame_bytes = setup.max_frame_bytes;
    std::memset(options.namespace_digest, setup.ns, sizeof options.namespace_digest);
    return kvt_node_open(runtime, &options, &node);
  }

  std::string url() const {
    char buffer[512];
    size_t size = 0;
    EXPECT_EQ(kvt_node_url(node, buffer, sizeof buffer, &size), KVT_OK) << LastError();
    return std::string(buffer, size);
  }
  kvt_peer_t Connect(const std::string& to) {
    kvt_peer_t peer = 0;
    EXPECT_EQ(kvt_node_connect(node, to.data(), to.size(), kLong, &peer), KVT_OK) << LastError();
    return peer;
  }
  kvt_status_t TryConnect(const std::string& to, int64_t timeout_ms = kLong) {
    kvt_peer_t peer = 0;
    return kvt_node_connect(node, to.data(), to.size(), timeout_ms, &peer);
  }
  void Put(const std::vector<uint8_t>& key, const std::vector<uint8_t>& frame) {
    kvt_status_t result = KVT_OK;
    const uint64_t length = frame.size();
    uint64_t operation = 0;
    ASSERT_EQ(kvt_cache_submit_put(cache, key.data(), 1, frame.data(), &length, &result, kLong, &operation),
              KVT_OK)
        << LastError();
    ASSERT_EQ(kvt_cache_wait(cache, operation, kLong, nullptr), KVT_OK) << LastError();
  }
  std::vector<uint8_t> Get(const std::vector<uint8_t>& key) {
    size_t needed = 0;
    if (kvt_cache_get(cache, key.data(), nullptr, 0, &needed) != KVT_OK) return {};
    std::vector<uint8_t> frame(needed);
    EXPECT_EQ(kvt_cache_get(cache, key.data(), frame.data(), frame.size(), &needed), KVT_OK) << LastError();
    return frame;
  }
  kvt_node_stats_t Stats() const {
    kvt_node_stats_t stats = {};
    stats.struct_size = sizeof stats;
    EXPECT_EQ(kvt_node_stats(node, &stats), KVT_OK) << LastError();
    return stats;
  }

  kvt_runtime_t runtime = 0;
  kvt_model_t model = 0;
  kvt_cache_t cache = 0;
  kvt_node_t node = 0;
  kvt_status_t opened = KVT_ERR_INTERNAL;
};

// A pull and its memory.
struct Pull {
  Pull(size_t count, size_t slot)
      : stride(slot), memory(count * slot, 0xee), lengths(count), results(count, 1) {}
  kvt_status_t Submit(kvt_peer_t peer, const std::vector<uint8_t>& keys, int64_t timeout_ms = kLong) {
    return kvt_peer_submit_pull(peer, keys.data(), results.size(), memory.data(), stride, lengths.data(),
                                results.data(), timeout_ms, &operation);
  }
  kvt_status_t Wait(kvt_node_t node) { return kvt_node_wait(node, operation, kLong, &completion); }
  std::vector<uint8_t> Frame(size_t i) const {
    const auto begin = memory.begin() + static_cast<ptrdiff_t>(i * stride);
    return std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(lengths[i]));
  }

  size_t stride;
  std::vector<uint8_t> memory;
  std::vector<uint64_t> lengths;
  std::vector<kvt_status_t> results;
  uint64_t operation = 0;
  kvt_completion_t completion = {};
};

// A path for a Unix socket that is gone with the object.
struct SocketPath {
  SocketPath() : path("/tmp/kvt-net-" + std::to_string(getpid()) + "-" + std::to_string(Next())) {}
  ~SocketPath() { unlink(path.c_str()); }
  std::string url() const { return "unix:" + path; }
  static int Next() {
    static int next = 0;
    return next++;
  }
  std::string path;
};

}  // namespace kvt_test

#endif  // KVARTET_TESTS_UNIT_NODE_FIXTURE_H_
