// raw_copy and the lossy codecs' decoding against memcpy of the same KV, one thread, beyond the last-level
// cache. The area `core` has the first bars, the area `codec` those of all codecs.
#include <kvartet/kvartet.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "bench/bench.h"

namespace kvt::bench {
namespace {

constexpr int kRounds = 7;
constexpr uint64_t kKvBytes = uint64_t{256} << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<uint8_t, Free>;

// Zeroed, so that no page is missing when it counts.
Buffer Allocate(uint64_t bytes) {
  auto* memory = static_cast<uint8_t*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  if (memory == nullptr) Fail("out of memory");
  std::memset(memory, 0, bytes);
  return Buffer(memory);
}

// f16 KV of a model's shape, 256 MiB of it, with a view and a copy to decode into.
class Kv {
 public:
  Kv(uint32_t layers, uint32_t heads, uint32_t dim) : layers_(layers), heads_(heads), dim_(dim) {
    const uint64_t token_bytes = uint64_t{layers} * 2 * heads * dim * 2;
    tokens_ = kKvBytes / token_bytes;
    bytes_ = tokens_ * token_bytes;
    from_ = Allocate(bytes_);
    to_ = Allocate(bytes_);
    Fill();
    kvt_model_options_t options;
    kvt_model_options_init(&options, sizeof options);
    options.model_id = reinterpret_cast<const uint8_t*>("bench");
    options.model_id_len = 5;
    options.layers = layers;
    options.kv_heads = heads;
    options.k_dim = options.v_dim = dim;
    Check(kvt_model_create(&options, &model_), "kvt_model_create");
    kvt_frame_spec_init(&spec_, sizeof spec_);
    spec_.token_count = tokens_;
  }
  ~Kv() { kvt_model_destroy(model_); }
  Kv(const Kv&) = delete;
  Kv& operator=(const Kv&) = delete;

  uint64_t bytes() const { return bytes_; }
  kvt_model_t model() const { return model_; }
  const kvt_frame_spec_t* spec() const { return &spec_; }
  double Copy() {
    return Seconds([&] { std::memcpy(to_.get(), from_.get(), bytes_); });
  }

  // The view of the source, or of the copy; valid until the next call.
  const kvt_view_t* View(bool source) {
    bases_.clear();
    const uint64_t rows = bytes_ / (layers_ * 2);
    for (uint32_t i = 0; i < layers_ * 2; ++i) bases_.push_back((source ? from_ : to_).get() + i * rows);
    kvt_view_init(&view_, sizeof view_);
    view_.element = KVT_ELEMENT_F16;
    view_.layer_end = layers_;
    view_.head_end = heads_;
    view_.bases = bases_.data();
    view_.base_count = bases_.size();
    for (int stream = 0; stream < 2; ++stream) {
      view_.element_stride[stream] = 2;
      view_.head_stride[stream] = int64_t{dim_} * 2;
      view_.token_stride[stream] = int64_t{heads_} * dim_ * 2;
    }
    view_.tokens = tokens_;
    return &view_;
  }

 private:
  // Finite halves of either sign below 2, many of them different.
  void Fill() {
    std::mt19937_64 random(1);
    auto* halves = reinterpret_cast<uint16_t*>(from_.get());
    for (uint64_t i = 0; i < bytes_ / 8; ++i) {
      const uint64_t bits = random() & 0xbfffbfffbfffbfffu;
      std::memcpy(halves + 4 * i, &bits, sizeof bits);
    }
  }

  uint32_t layers_, heads_, dim_;
  uint64_t tokens_ = 0, bytes_ = 0;
  Buffer from_, to_;
  kvt_model_t model_ = 0;
  kvt_frame_spec_t spec_;
  kvt_view_t view_;
  std::vector<void*> bases_;
};

struct Measured {
  Pair encode, decode;
  uint64_t kv_bytes, frame_bytes;
};

Measured Measure(Kv& kv, const char* name) {
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  options.name = name;
  options.name_len = std::strlen(name);
  kvt_codec_t codec = 0;
  Check(kvt_codec_create(kv.model(), &options, &codec), "kvt_codec_create");
  uint64_t bound = 0;
  Check(kvt_codec_bound(codec, kv.View(true), kv.spec(), &bound), "kvt_codec_bound");
  const Buffer frame = Allocate(bound);
  size_t size = 0;
  const auto encode = [&] {
    const kvt_view_t* view = kv.View(true);
    return Seconds([&] {
      Check(kvt_codec_encode(codec, view, kv.spec(), frame.get(), bound, &size, nullptr), "kvt_codec_encode");
    });
  };
  const auto decode = [&] {
    const kvt_view_t* view = kv.View(false);
    return Seconds([&] {
      Check(kvt_codec_decode(codec, frame.get(), size, kv.spec(), view, nullptr), "kvt_codec_decode");
    });
  };
  const auto copy = [&] { return kv.Copy(); };
  Measured measured;
  measured.encode = Interleave(kRounds, encode, copy);
  measured.decode = Interleave(kRounds, decode, copy);
  measured.kv_bytes = kv.bytes();
  measured.frame_bytes = size;
  kvt_codec_destroy(codec);
  return measured;
}

std::string Speed(const Measured& m, const Pair& pair) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f GB/s of KV",
                static_cast<double>(m.kv_bytes) / pair.ours.median / 1e9);
  return text;
}

// The worst of the codecs `names` over the shapes. `encode_too`: the bar holds for encoding as well.
Bar Worst(const char* bar_name, double bar_value, const std::vector<const char*>& names, bool encode_too) {
  Bar bar{
      .name = bar_name, .value = 1e9, .unit = "x memcpy", .op = ">=", .bar = bar_value, .rounds = kRounds};
  const struct { uint32_t layers, heads, dim; } shapes[] = {{32, 8, 128}, {30, 3, 64}};
  for (const auto& shape : shapes) {
    Kv kv(shape.layers, shape.heads, shape.dim);
    for (const char* name : names) {
      const Measured m = Measure(kv, name);
      const auto take = [&](const Pair& pair) {
        if (pair.peer_by_ours.median >= bar.value) return;
        bar.value = pair.peer_by_ours.median;
        bar.spread = pair.peer_by_ours.spread;
        bar.peer = Peer{"memcpy GB/s", static_cast<double>(m.kv_bytes) / pair.peer.median / 1e9};
      };
      take(m.decode);
      if (encode_too) take(m.encode);
      char text[200];
      std::snprintf(text, sizeof text, "%s%s %ux%u: encode %s (%.2f), decode %s (%.2f), ratio %.2f",
                    bar.note.empty() ? "" : "; ", name, shape.heads, shape.dim, Speed(m, m.encode).c_str(),
                    m.encode.peer_by_ours.median, Speed(m, m.decode).c_str(), m.decode.peer_by_ours.median,
                    static_cast<double>(m.kv_bytes) / static_cast<double>(m.frame_bytes));
      bar.note += text;
    }
  }
  return bar;
}

std::vector<Bar> Codecs() {
  return {Worst("raw_copy", 0.5, {"raw"}, true), Worst("int8_decode", 0.25, {"int8"}, false),
          Worst("kivi_decode", 0.25, {"kivi2", "kivi4"}, false)};
}
KVT_BENCH(core, Codecs);

std::vector<Bar> Decoders() {
  return {Worst("int8_decode", 0.35, {"int8"}, false), Worst("fp8_decode", 0.35, {"fp8", "fp8_e5m2"}, false),
          Worst("kivi_decode", 0.35, {"kivi2", "kivi4", "kivi8"}, false),
          Worst("rotated_decode", 0.2, {"rotated2", "rotated3", "rotated4"}, false)};
}
KVT_BENCH(codec, Decoders);

}  // namespace
}  // namespace kvt::bench
