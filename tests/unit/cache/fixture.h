// What the cache's tests share: a small model, views filled with known rows, keys and whole frames.
#ifndef KVARTET_TESTS_UNIT_CACHE_FIXTURE_H_
#define KVARTET_TESTS_UNIT_CACHE_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "codec/codec.h"

namespace kvt {

inline constexpr uint32_t kBlockTokens = 16;
inline constexpr uint32_t kLayers = 2, kHeads = 2, kHeadDim = 8;
inline constexpr size_t kRowBytes = kHeads * kHeadDim * 2;

inline Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

inline std::shared_ptr<Runtime> MakeRuntime(uint32_t threads = 2, uint64_t memory_limit = 0) {
  kvt_runtime_options_t options = {};
  options.struct_size = sizeof options;
  options.threads = threads;
  options.memory_limit_bytes = memory_limit;
  return *Runtime::Create(options);
}

inline std::shared_ptr<const Model> MakeModel(absl::string_view id = "model-a") {
  kvt_model_options_t options = {};
  options.struct_size = sizeof options;
  options.layout = KVT_LAYOUT_KV;
  options.model_id = reinterpret_cast<const uint8_t*>(id.data());
  options.model_id_len = id.size();
  options.layers = kLayers;
  options.kv_heads = kHeads;
  options.k_dim = options.v_dim = kHeadDim;
  options.element = KVT_ELEMENT_F16;
  options.rope_magnitude = 1;
  auto model = Model::Create(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

inline std::shared_ptr<const Codec> MakeCodec(std::shared_ptr<const Model> model,
                                              absl::string_view name = "raw") {
  kvt_codec_options_t options = {};
  options.struct_size = sizeof options;
  options.group_tokens = options.group_channels = 32;
  options.name = name.data();
  options.name_len = name.size();
  auto codec = Codec::Create(std::move(model), options);
  EXPECT_TRUE(codec.ok()) << codec.status();
  return *codec;
}

// Rows of `tokens` tokens, layer by layer and stream by stream; small finite f16 values.
struct Rows {
  explicit Rows(uint64_t token_count, uint32_t seed = 0) : tokens(token_count) {
    data.resize(kLayers * 2 * tokens * kRowBytes / 2);
    if (seed == 0) return;
    uint32_t state = seed;
    for (uint16_t& element : data) {
      state = state * 1664525u + 1013904223u;
      element = static_cast<uint16_t>(0x2000 | (state >> 19));
    }
  }
  void* base(size_t part) { return data.data() + part * tokens * kRowBytes / 2; }
  // The bytes of one block, for comparing.
  std::string Block(size_t block) const {
    std::string bytes;
    for (size_t part = 0; part < kLayers * 2; ++part) {
      const auto* from =
          reinterpret_cast<const char*>(data.data()) + (part * tokens + block * kBlockTokens) * kRowBytes;
      bytes.append(from, kBlockTokens * kRowBytes);
    }
    return bytes;
  }
  View MakeView(const Model& model, uint64_t first_position = 0) {
    std::vector<void*> bases;
    for (size_t part = 0; part < kLayers * 2; ++part) bases.push_back(base(part));
    kvt_view_t view = {};
    view.struct_size = sizeof view;
    view.memory = KVT_MEMORY_HOST;
    view.element = KVT_ELEMENT_F16;
    view.layer_end = kLayers;
    view.head_end = kHeads;
    view.bases = bases.data();
    view.base_count = bases.size();
    for (int stream = 0; stream < 2; ++stream) {
      view.token_stride[stream] = kRowBytes;
      view.head_stride[stream] = kHeadDim * 2;
      view.element_stride[stream] = 2;
    }
    view.tokens = tokens;
    view.first_position = first_position;
    auto checked = View::Check(model, &view);
    EXPECT_TRUE(checked.ok()) << checked.status();
    return *checked;
  }

  uint64_t tokens;
  std::vector<uint16_t> data;
};

inline Key MakeKey(uint32_t number) {
  Key key;
  StoreLe<uint32_t>(key.bytes.data(), number * 2654435761u + 1);
  StoreLe<uint32_t>(key.bytes.data() + 4, number);
  StoreLe<uint32_t>(key.bytes.data() + 32, kBlockTokens);
  return key;
}

inline std::vector<uint8_t> MakeKeys(uint32_t first, uint32_t count) {
  std::vector<uint8_t> keys(count * KVT_KEY_BYTES);
  for (uint32_t i = 0; i < count; ++i) {
    const Key key = MakeKey(first + i);
    std::copy(key.bytes.begin(), key.bytes.end(), &keys[i * KVT_KEY_BYTES]);
  }
  return keys;
}

// A whole frame of `tokens` tokens under MakeKey(number); its rows depend on the number.
inline std::string MakeFrame(uint32_t number, uint32_t tokens = kBlockTokens) {
  static const std::shared_ptr<const Codec> codec = MakeCodec(MakeModel());
  Rows rows(tokens, number + 1);
  FrameSpec spec;
  spec.layer_end = kLayers;
  spec.token_count = tokens;
  spec.key = MakeKey(number);
  const View view = rows.MakeView(codec->model());
  std::string frame(*codec->Bound(view, spec), '\0');
  const auto report =
      codec->Encode(view, spec, MutableBytes(reinterpret_cast<uint8_t*>(frame.data()), frame.size()));
  EXPECT_TRUE(report.ok()) << report.status();
  frame.resize(report->frame_bytes);
  return frame;
}

// A directory that goes away with the object.
class TempDir {
 public:
  // `fast`: in memory if the machine has a place for it; for tests that flush often and test no disk.
  explicit TempDir(bool fast = false) {
    const char* parent = getenv("TMPDIR");
    if (parent == nullptr) parent = "/tmp";
    if (fast && access("/dev/shm", W_OK) == 0) parent = "/dev/shm";
    path_ = std::string(parent) + "/kvt-cache-XXXXXX";
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Where a test runs over every tier.
inline std::string TierUrl(const std::string& scheme, const TempDir& dir, const std::string& options = "") {
  return scheme == "mem" ? absl::StrCat("mem:", options)
                         : absl::StrCat("file:", dir.path(), "/cache", options);
}

}  // namespace kvt

#endif  // KVARTET_TESTS_UNIT_CACHE_FIXTURE_H_
