#include "codec/frame.h"

#include "codec/frame_header.h"
#include "cpu/hash_copy.h"

namespace kvt {
namespace {

FrameSummary Summarise(const FrameHeader& header) {
  FrameSummary summary;
  summary.key = header.key;
  summary.namespace_digest = header.namespace_digest;
  summary.model = header.model;
  summary.first_position = header.first_position;
  summary.tokens = header.tokens;
  summary.layer_begin = header.layer_begin;
  summary.layer_end = header.layer_end;
  summary.segments = static_cast<uint32_t>(header.segments.size());
  summary.frame_bytes = header.payload_offset + header.payload_length;
  return summary;
}

}  // namespace

bool SameForm(Bytes a, Bytes b) {
  const auto header_a = ParseFront(a), header_b = ParseFront(b);
  if (!header_a.ok() || !header_b.ok() || !Covers(*header_a, *header_b) || !Covers(*header_b, *header_a))
    return false;
  // What may follow a profile shows in nothing else: its key is that of the profile alone.
  return header_a->codec != kProfileCodec ||
         std::equal(header_a->segments.begin(), header_a->segments.end(), header_b->segments.begin(),
                    header_b->segments.end(),
                    [](const Segment& x, const Segment& y) { return x.checksum == y.checksum; });
}

StatusOr<FrameSummary> InspectFrame(Bytes frame) {
  KVT_ASSIGN_OR_RETURN(const FrameHeader header, ParseFrame(frame));
  return Summarise(header);
}

StatusOr<FrameSummary> VerifyFrame(Bytes frame, uint64_t* checksums) {
  KVT_ASSIGN_OR_RETURN(const FrameHeader header, ParseFrame(frame));
  for (size_t i = 0; i < header.segments.size(); ++i) {
    const Segment& segment = header.segments[i];
    const Bytes stored = header.Stored(frame, segment);
    if (kernels::Hash(stored.data(), stored.size()) != segment.checksum) {
      return Error(KVT_ERR_CORRUPT,
                   absl::StrCat("frame: segment ", i, " (layer ", segment.layer_begin, ", stream ",
                                segment.stream, "): its bytes do not have its checksum"));
    }
    KVT_RETURN_IF_ERROR(header.CheckPadding(frame, i));
  }
  if (checksums != nullptr) *checksums += 2 + header.segments.size();
  return Summarise(header);
}

}  // namespace kvt
