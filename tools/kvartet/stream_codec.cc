#include "kvartet/stream_codec.h"

#include <cstring>

namespace kvt::cli {
namespace {

kvt_frame_spec_t SpecFor(const StreamName& name, int32_t tokens) {
  kvt_frame_spec_t spec;
  kvt_frame_spec_init(&spec, sizeof spec);
  spec.token_count = static_cast<uint64_t>(tokens);
  std::memcpy(spec.key, name.key.data(), name.key.size());
  std::memcpy(spec.namespace_digest, name.ns.data(), name.ns.size());
  return spec;
}

kvt_codec_report_t EmptyReport() {
  kvt_codec_report_t report = {};
  report.struct_size = sizeof report;
  return report;
}

}  // namespace

std::vector<Part> Parts(int32_t prefix_tokens) {
  std::vector<Part> parts;
  int32_t begin = 0;
  for (const int32_t size : Take(engine::PrefillChunks(prefix_tokens, kPrefillChunk), "prefill chunks")) {
    parts.push_back({begin, begin + size});
    begin += size;
  }
  return parts;
}

StreamName NameStream(const Model& model, std::span<const int32_t> prefix, const std::string& label) {
  return {SequenceKey(model, prefix, label), DemoNamespace()};
}

std::span<const uint8_t> PartEncoder::Encode(const Codec& codec, const StreamName& name,
                                             const engine::KvBlob& blob, uint32_t exempt_first,
                                             uint32_t exempt_last, kvt_codec_report_t* report) {
  const BlobView view(blob);
  kvt_frame_spec_t spec = SpecFor(name, blob.tokens());
  spec.exempt_first = exempt_first;
  spec.exempt_last = exempt_last;
  uint64_t bound = 0;
  Check(kvt_codec_bound(codec.get(), view.get(), &spec, &bound), "kvt_codec_bound");
  if (capacity_ < bound) {
    buffer_.reset(new uint8_t[bound]);
    capacity_ = bound;
  }
  size_t size = 0;
  *report = EmptyReport();
  Check(kvt_codec_encode(codec.get(), view.get(), &spec, buffer_.get(), capacity_, &size, report),
        "kvt_codec_encode");
  return {buffer_.get(), size};
}

void DecodePart(const Codec& codec, const StreamName& name, std::span<const uint8_t> frame,
                engine::KvBlob* blob, kvt_codec_report_t* report) {
  const BlobView view(*blob);
  const kvt_frame_spec_t spec = SpecFor(name, blob->tokens());
  *report = EmptyReport();
  Check(kvt_codec_decode(codec.get(), frame.data(), frame.size(), &spec, view.get(), report),
        "kvt_codec_decode");
}

}  // namespace kvt::cli
