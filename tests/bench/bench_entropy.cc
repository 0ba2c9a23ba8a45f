// rans: our range coding against libzstd on the same symbols, which are the top bytes of f16 KV, channel
// after channel. lossless: bytes and speed of the lossless codec on the KV that a model makes of a text.
// nested: the bytes of its two frames over those of lossless.
#include <kvartet/kvartet.h>
#include <zstd.h>

#include <cstdio>
#include <cstring>

#include "bench/bench.h"
#include "bench/bench_real_kv.h"
#include "codec/entropy/entropy.h"

namespace kvt::bench {
namespace {

#ifdef KVT_BENCH_MODEL

constexpr int kRounds = 9;
constexpr auto kTokens = RealKv::kTokens;

// The top bytes of all elements, channel after channel.
std::vector<uint8_t> TopBytes(const RealKv& kv) {
  std::vector<uint8_t> symbols;
  const engine::KvBlob& blob = kv.rows();
  for (int32_t layer = 0; layer < blob.geometry().layers; ++layer) {
    for (const engine::RowView& rows : {blob.K(layer), blob.V(layer)}) {
      for (int32_t channel = 0; channel < rows.heads * rows.head_dim; ++channel) {
        const uint8_t* at = rows.base + channel * 2 + 1;
        for (int32_t token = 0; token < rows.tokens; ++token)
          symbols.push_back(at[token * rows.token_stride]);
      }
    }
  }
  return symbols;
}

kvt_codec_t NewCodec(const RealKv& kv, const char* name) {
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  options.name = name;
  options.name_len = std::strlen(name);
  kvt_codec_t codec = 0;
  Check(kvt_codec_create(kv.model(), &options, &codec), "kvt_codec_create");
  return codec;
}

kvt_frame_spec_t WholeSpec() {
  kvt_frame_spec_t spec;
  kvt_frame_spec_init(&spec, sizeof spec);
  spec.token_count = kTokens;
  return spec;
}

// Encodes and decodes the rows; returns the frame's bytes, and adds the decoding's time.
size_t Code(RealKv& kv, const char* name, double* seconds) {
  const kvt_codec_t codec = NewCodec(kv, name);
  const kvt_frame_spec_t spec = WholeSpec();
  uint64_t bound = 0;
  Check(kvt_codec_bound(codec, kv.View(true), &spec, &bound), "kvt_codec_bound");
  std::vector<uint8_t> frame(bound);
  size_t size = 0;
  Check(kvt_codec_encode(codec, kv.View(true), &spec, frame.data(), bound, &size, nullptr),
        "kvt_codec_encode");
  const kvt_view_t* view = kv.View(false);
  *seconds += Seconds(
      [&] { Check(kvt_codec_decode(codec, frame.data(), size, &spec, view, nullptr), "kvt_codec_decode"); });
  kvt_codec_destroy(codec);
  return size;
}

Bar Nested(RealKv& kv) {
  double lossless_seconds = 0, coarse_seconds = 0, rest_seconds = 0;
  const auto lossless = static_cast<double>(Code(kv, "lossless", &lossless_seconds));
  const auto coarse = static_cast<double>(Code(kv, "nested_coarse", &coarse_seconds));
  if (kv.Same()) Fail("nested: the coarse rows are the rows");
  const auto rest = static_cast<double>(Code(kv, "nested_rest", &rest_seconds));
  if (!kv.Same()) Fail("nested: the bits differ");
  Bar bar{.name = "nested",
          .value = (coarse + rest) / lossless,
          .unit = "x lossless bytes, coarse and rest",
          .op = "<=",
          .bar = 1.03};
  const auto bytes = static_cast<double>(kv.bytes());
  char text[120];
  std::snprintf(text, sizeof text,
                "coarse frame %.2f x fewer bytes than raw; decode %.2f and %.2f GB/s of KV", bytes / coarse,
                bytes / coarse_seconds / 1e9, bytes / rest_seconds / 1e9);
  bar.note = text;
  return bar;
}

std::vector<Bar> Lossless(RealKv& kv) {
  const kvt_codec_t codec = NewCodec(kv, "lossless");
  const kvt_frame_spec_t spec = WholeSpec();
  uint64_t bound = 0;
  Check(kvt_codec_bound(codec, kv.View(true), &spec, &bound), "kvt_codec_bound");
  std::vector<uint8_t> frame(bound), copy(kv.bytes());
  size_t size = 0;
  const double encode = Seconds([&] {
    Check(kvt_codec_encode(codec, kv.View(true), &spec, frame.data(), bound, &size, nullptr),
          "kvt_codec_encode");
  });
  const Pair decode = Interleave(
      kRounds,
      [&] {
        const kvt_view_t* view = kv.View(false);
        return Seconds([&] {
          Check(kvt_codec_decode(codec, frame.data(), size, &spec, view, nullptr), "kvt_codec_decode");
        });
      },
      [&] { return Seconds([&] { std::memcpy(copy.data(), kv.rows().bytes().data(), kv.bytes()); }); });
  kvt_codec_destroy(codec);
  if (!kv.Same()) Fail("lossless: the bits differ");
  const auto bytes = static_cast<double>(kv.bytes());
  Bar ratio{.name = "lossless",
            .value = bytes / static_cast<double>(size),
            .unit = "x fewer bytes",
            .op = ">=",
            .bar = 1.25,
            .note = "whole frame of 1,536 tokens of f16 KV"};
  Bar speed{.name = "lossless_decode",
            .value = bytes / decode.ours.median / 1e9,
            .unit = "GB/s of KV",
            .op = ">=",
            .bar = 1.0,
            .peer = Peer{"memcpy GB/s", bytes / decode.peer.median / 1e9},
            .rounds = kRounds,
            .spread = decode.ours.spread};
  char text[80];
  std::snprintf(text, sizeof text, "one core; encode %.3f GB/s", bytes / encode / 1e9);
  speed.note = text;
  return {ratio, speed};
}

Bar Rans(const std::vector<uint8_t>& symbols) {
  std::vector<uint8_t> ours(EntropyBound(symbols.size())), back(symbols.size());
  double encode = 0;
  uint64_t size = 0;
  encode =
      Seconds([&] { size = EncodeSymbols(Bytes(symbols), nullptr, MutableBytes(ours.data(), ours.size())); });
  Bar bar{.name = "rans",
          .value = 1e9,
          .unit = "x zstd's decode at <= its size",
          .op = ">=",
          .bar = 1.0,
          .rounds = kRounds};
  const auto count = static_cast<double>(symbols.size());
  for (const int level : {1, 3}) {
    std::vector<uint8_t> theirs(ZSTD_compressBound(symbols.size())), zstd_back(symbols.size());
    const size_t zstd_size =
        ZSTD_compress(theirs.data(), theirs.size(), symbols.data(), symbols.size(), level);
    const Pair pair = Interleave(
        kRounds,
        [&] {
          return Seconds([&] {
            if (!DecodeSymbols(Bytes(ours.data(), size), nullptr, MutableBytes(back.data(), back.size()))
                     .ok())
              Fail("rans: the stream does not decode");
          });
        },
        [&] {
          return Seconds(
              [&] { ZSTD_decompress(zstd_back.data(), zstd_back.size(), theirs.data(), zstd_size); });
        });
    if (back != symbols || zstd_back != symbols) Fail("rans: the symbols differ");
    // At more bytes than zstd's there is no comparison.
    const double value = size <= zstd_size ? pair.peer_by_ours.median : 0;
    if (value < bar.value) {
      bar.value = value;
      bar.spread = pair.peer_by_ours.spread;
      bar.peer = Peer{"zstd GB/s", count / pair.peer.median / 1e9};
    }
    char text[200];
    std::snprintf(text, sizeof text,
                  "%szstd -%d: %.3f bits a symbol, ours %.3f, decode %.2f GB/s against %.2f",
                  bar.note.empty() ? "" : "; ", level, 8 * static_cast<double>(zstd_size) / count,
                  8 * static_cast<double>(size) / count, count / pair.ours.median / 1e9,
                  count / pair.peer.median / 1e9);
    bar.note += text;
  }
  char text[60];
  std::snprintf(text, sizeof text, "; encode %.2f GB/s", count / encode / 1e9);
  bar.note += text;
  return bar;
}

#endif

std::vector<Bar> Entropy() {
#ifdef KVT_BENCH_MODEL
  RealKv kv;
  std::vector<Bar> bars = Lossless(kv);
  bars.insert(bars.begin(), Rans(TopBytes(kv)));
  bars.push_back(Nested(kv));
  return bars;
#else
  Fail("area codec needs the engine and its model: ./bootstrap deps");
#endif
}
KVT_BENCH(codec, Entropy);

}  // namespace
}  // namespace kvt::bench
