// Decoding of hostile frames of the right model: the first byte chooses a codec, the others overwrite a good
// frame (two bytes of place, one of value), whose checksums are then made right. Rows lie between guards.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "codec/codec.h"
#include "unit/codec/reseal.h"

namespace {

constexpr uint64_t kTokens = 20;
constexpr uint32_t kDim = 12;
constexpr size_t kGuard = 64;

class World {
 public:
  World() {
    kvt_model_options_t options = {};
    options.struct_size = sizeof options;
    options.layout = KVT_LAYOUT_KV;
    options.model_id = reinterpret_cast<const uint8_t*>("fuzz");
    options.model_id_len = 4;
    options.layers = 1;
    options.kv_heads = 1;
    options.k_dim = options.v_dim = kDim;
    options.element = KVT_ELEMENT_F16;
    options.rope_magnitude = 1;
    model_ = *kvt::Model::Create(options);
    for (const char* name : {"raw", "int8", "kivi2", "kivi4"}) {
      kvt_codec_options_t codec = {};
      codec.struct_size = sizeof codec;
      codec.group_tokens = 16;
      codec.group_channels = 8;
      codec.name = name;
      codec.name_len = std::strlen(name);
      codecs_.push_back(*kvt::Codec::Create(model_, codec));
      const kvt::View view = MakeView();
      frames_.emplace_back(*codecs_.back()->Bound(view, Spec(view)));
      if (!codecs_.back()->Encode(view, Spec(view), kvt::MutableBytes(frames_.back())).ok()) __builtin_trap();
    }
  }

  void Decode(const uint8_t* data, size_t size) {
    const size_t chosen = data[0] % codecs_.size();
    std::vector<uint8_t> frame = frames_[chosen];
    for (size_t i = 1; i + 3 <= size; i += 3)
      frame[(data[i] | data[i + 1] << 8) % frame.size()] = data[i + 2];
    kvt::test::Reseal(frame);
    if (const auto header = kvt::ParseFrame(kvt::Bytes(frame)); header.ok()) {
      kvt::FrameHeader right = *header;
      for (kvt::Segment& segment : right.segments) {
        const kvt::Bytes stored = header->Stored(kvt::Bytes(frame), segment);
        segment.checksum = kvt::kernels::Hash(stored.data(), stored.size());
      }
      frame = kvt::test::WithHeader(frame, right, header->payload_offset);
    }
    const kvt::View view = MakeView();
    (void)codecs_[chosen]->Decode(kvt::Bytes(frame), Spec(view), view);
    for (const auto& rows : rows_) {
      for (size_t i = 0; i < kGuard; ++i)
        if (rows[i] != 0xa5 || rows[rows.size() - 1 - i] != 0xa5) __builtin_trap();
    }
  }

 private:
  kvt::View MakeView() {
    kvt_view_t view = {};
    view.struct_size = sizeof view;
    view.memory = KVT_MEMORY_HOST;
    view.element = KVT_ELEMENT_F16;
    view.layer_end = view.head_end = 1;
    for (auto& rows : rows_) {
      rows.assign(kTokens * kDim * 2 + 2 * kGuard, 0xa5);
      bases_[&rows - rows_.data()] = rows.data() + kGuard;
    }
    view.bases = bases_.data();
    view.base_count = bases_.size();
    for (int stream = 0; stream < 2; ++stream) {
      view.element_stride[stream] = 2;
      view.head_stride[stream] = view.token_stride[stream] = kDim * 2;
    }
    view.tokens = kTokens;
    return *kvt::View::Check(*model_, &view);
  }

  static kvt::FrameSpec Spec(const kvt::View& view) {
    kvt_frame_spec_t spec = {};
    spec.struct_size = sizeof spec;
    spec.token_count = kTokens;
    spec.exempt_first = spec.exempt_last = 1;
    return *kvt::FrameSpec::Check(view, &spec);
  }

  std::shared_ptr<const kvt::Model> model_;
  std::vector<std::shared_ptr<const kvt::Codec>> codecs_;
  std::vector<std::vector<uint8_t>> frames_;
  std::array<std::vector<uint8_t>, 2> rows_;
  std::array<void*, 2> bases_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  if (size != 0) world.Decode(data, size);
  return 0;
}
