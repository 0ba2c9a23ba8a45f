// What the bars of the transform codec share: KV of a small model's shape, and a profile of it.
// Single-threaded.
#ifndef KVARTET_TESTS_BENCH_BENCH_TRANSFORM_KV_H_
#define KVARTET_TESTS_BENCH_BENCH_TRANSFORM_KV_H_

#include <kvartet/experimental.h>
#include <kvartet/kvartet.h>

#include <string>
#include <vector>

namespace kvt::bench {

constexpr uint32_t kLayers = 30, kHeads = 3, kDim = 64, kRatio = 16;
constexpr uint64_t kTokens = 2048;
constexpr size_t kRow = size_t{kHeads} * kDim;
constexpr uint64_t kKvBytes = uint64_t{kLayers} * 2 * kTokens * kRow * 2;

// f16 KV of SmolLM2-135M's shape: normal values, whose size falls over the channels of all layers, equal in
// the pairs that RoPE turns.
class TransformKv {
 public:
  TransformKv();
  ~TransformKv() { kvt_model_destroy(model_); }
  TransformKv(const TransformKv&) = delete;
  TransformKv& operator=(const TransformKv&) = delete;

  void Fill(uint32_t seed);
  kvt_model_t model() const { return model_; }
  const kvt_view_t* view() const { return &view_; }
  const kvt_frame_spec_t* spec() const { return &spec_; }

 private:
  std::vector<_Float16> halves_;
  std::vector<void*> bases_;
  kvt_model_t model_ = 0;
  kvt_view_t view_;
  kvt_frame_spec_t spec_;
};

// The profile of two fillings, for kRatio; made once.
const std::vector<uint8_t>& CalibrateProfile(TransformKv& kv);

// A codec of the KV's model, with the memory for its frame of all tokens, or of some.
class TransformCodec {
 public:
  // `profile`: for "transform" and "dense"; else empty.
  TransformCodec(const TransformKv& kv, const std::string& name, const std::vector<uint8_t>& profile,
                 uint64_t token_begin = 0, uint64_t token_count = kTokens, uint32_t ratio = kRatio);
  ~TransformCodec() { kvt_codec_destroy(codec_); }
  TransformCodec(const TransformCodec&) = delete;
  TransformCodec& operator=(const TransformCodec&) = delete;

  double Encode();                                // seconds
  double Decode() { return Decode(kv_.view()); }  // of what Encode made
  double Decode(const kvt_view_t* into);          // a view of the same shape
  const std::vector<uint8_t>& frame() const { return frame_; }
  size_t frame_bytes() const { return frame_bytes_; }

 private:
  const TransformKv& kv_;
  kvt_frame_spec_t spec_;
  kvt_codec_t codec_ = 0;
  std::vector<uint8_t> frame_;
  size_t frame_bytes_ = 0;
};

}  // namespace kvt::bench

#endif  // KVARTET_TESTS_BENCH_BENCH_TRANSFORM_KV_H_
