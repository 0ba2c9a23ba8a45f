#include "kvartet/stream_codec.h"

#include <algorithm>
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

kvt_frame_spec_t SpecFor(const StreamName& name, const Piece& piece, const engine::KvBlob& blob) {
  kvt_frame_spec_t spec = SpecFor(name, piece.token_end - piece.token_begin);
  spec.token_begin = static_cast<uint64_t>(piece.token_begin - blob.pos_begin());
  spec.layer_begin = piece.layers.begin;
  spec.layer_end = piece.layers.end;
  spec.exempt_first = piece.exempt_first;
  return spec;
}

kvt_codec_report_t EmptyReport() {
  kvt_codec_report_t report = {};
  report.struct_size = sizeof report;
  return report;
}

void Decode(const Codec& codec, std::span<const uint8_t> frame, const kvt_frame_spec_t& spec,
            const engine::KvBlob& blob, kvt_codec_report_t* report) {
  const BlobView view(blob);
  *report = EmptyReport();
  Check(kvt_codec_decode(codec.get(), frame.data(), frame.size(), &spec, view.get(), report),
        "kvt_codec_decode");
}

}  // namespace

StreamName NameStream(const Model& model, std::span<const int32_t> prefix, const std::string& label) {
  return {SequenceKey(model, prefix, label), DemoNamespace()};
}

std::span<const uint8_t> PartEncoder::Encode(const Codec& codec, const StreamName& name,
                                             const engine::KvBlob& blob, uint32_t exempt_first,
                                             uint32_t exempt_last, kvt_codec_report_t* report) {
  kvt_frame_spec_t spec = SpecFor(name, blob.tokens());
  spec.exempt_first = exempt_first;
  spec.exempt_last = exempt_last;
  return Encode(codec, spec, blob, report);
}

std::span<const uint8_t> PartEncoder::Encode(const Codec& codec, const StreamName& name,
                                             const engine::KvBlob& blob, const Piece& piece,
                                             kvt_codec_report_t* report) {
  return Encode(codec, SpecFor(name, piece, blob), blob, report);
}

std::span<const uint8_t> PartEncoder::Encode(const Codec& codec, const kvt_frame_spec_t& spec,
                                             const engine::KvBlob& blob, kvt_codec_report_t* report) {
  const BlobView view(blob);
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
  Decode(codec, frame, SpecFor(name, blob->tokens()), *blob, report);
}

void DecodePiece(const Codec& codec, const StreamName& name, std::span<const uint8_t> frame,
                 const Piece& piece, const engine::KvBlob& blob, kvt_codec_report_t* report) {
  Decode(codec, frame, SpecFor(name, piece, blob), blob, report);
}

std::vector<engine::KvBlob> ReserveParts(const engine::Session& session, std::span<const Part> parts) {
  std::vector<engine::KvBlob> blobs;
  for (const Part& part : parts) {
    engine::KvBlob blob = Take(session.Reserve(part.begin, part.end - part.begin), "reserve");
    std::fill(blob.bytes().begin(), blob.bytes().end(), 0);
    blob.WriteHeaders();
    blobs.push_back(std::move(blob));
  }
  return blobs;
}

}  // namespace kvt::cli
