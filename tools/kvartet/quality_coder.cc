#include "kvartet/quality_coder.h"

namespace kvt::cli {
namespace {

kvt_frame_spec_t WholeSpec(const engine::KvBlob& blob) {
  kvt_frame_spec_t spec;
  kvt_frame_spec_init(&spec, sizeof spec);
  spec.token_count = static_cast<uint64_t>(blob.tokens());
  return spec;
}

}  // namespace

std::span<const uint8_t> ContextCoder::Encode(const Codec& codec, const engine::KvBlob& blob,
                                              std::span<const int8_t> importance) {
  const BlobView view(blob);
  kvt_frame_spec_t spec = WholeSpec(blob);
  spec.exempt_first = sinks_;
  spec.exempt_last = window_;
  spec.importance = importance.empty() ? nullptr : importance.data();
  uint64_t bound = 0;
  Check(kvt_codec_bound(codec.get(), view.get(), &spec, &bound), "kvt_codec_bound");
  if (capacity_ < bound) {
    buffer_.reset(new uint8_t[bound]);
    capacity_ = bound;
  }
  size_t size = 0;
  Check(kvt_codec_encode(codec.get(), view.get(), &spec, buffer_.get(), capacity_, &size, nullptr),
        "kvt_codec_encode");
  return {buffer_.get(), size};
}

void DecodeContext(const Codec& codec, std::span<const uint8_t> frame, const engine::KvBlob& blob) {
  const BlobView view(blob);
  const kvt_frame_spec_t spec = WholeSpec(blob);
  Check(kvt_codec_decode(codec.get(), frame.data(), frame.size(), &spec, view.get(), nullptr),
        "kvt_codec_decode");
}

}  // namespace kvt::cli
