#include "codec/describe.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "codec/frame_header.h"
#include "model/model.h"

namespace kvt {

// Every text in a header is a codec's name or hexadecimal digits, so nothing needs escaping.
StatusOr<std::string> DescribeFrame(Bytes frame) {
  KVT_ASSIGN_OR_RETURN(const FrameHeader header, ParseFrame(frame));
  std::string json;
  absl::StrAppendFormat(
      &json,
      R"({"format_version":%u,"frame_bytes":%u,"model":"%s","profile":%s,"key":"%s","namespace_digest":"%s",)",
      kFrameVersion, frame.size(), Hex(Bytes(header.model)),
      header.profile.empty() ? "null" : absl::StrCat("\"", Hex(AsBytes(header.profile)), "\""),
      header.key.ToString(), Hex(Bytes(header.namespace_digest)));
  absl::StrAppendFormat(&json, R"("layers":[%u,%u],"heads":[%u,%u],"streams":%u,"element":"%s",)",
                        header.layer_begin, header.layer_end, header.head_begin, header.head_end,
                        header.streams, ElementName(header.element));
  absl::StrAppendFormat(&json, R"("codec":"%s","group_tokens":%u,"group_channels":%u,)", header.codec,
                        header.group_tokens, header.group_channels);
  absl::StrAppendFormat(
      &json, R"("first_position":%u,"tokens":%u,"exempt_first":%u,"exempt_last":%u,"payload_bytes":%u,)",
      header.first_position, header.tokens, header.exempt_first, header.exempt_last, header.payload_length);
  json += header.position_offsets.empty()
              ? R"("position_offsets":null,)"
              : absl::StrCat(R"("position_offsets":[)", absl::StrJoin(header.position_offsets, ","), "],");
  uint64_t stored = 0, decoded = 0;
  for (const Segment& segment : header.segments) {
    stored += segment.stored_length;
    decoded += segment.decoded_length;
  }
  absl::StrAppendFormat(&json, R"("stored_bytes":%u,"decoded_bytes":%u,"segments":[)", stored, decoded);
  for (size_t i = 0; i < header.segments.size(); ++i) {
    const Segment& segment = header.segments[i];
    absl::StrAppendFormat(
        &json,
        R"(%s{"stream":%u,"layers":[%u,%u],"heads":[%u,%u],"offset":%u,"stored":%u,"decoded":%u,"checksum":"%016x"})",
        i == 0 ? "" : ",", segment.stream, segment.layer_begin, segment.layer_end, segment.head_begin,
        segment.head_end, segment.offset, segment.stored_length, segment.decoded_length, segment.checksum);
  }
  json += "]}";
  return json;
}

}  // namespace kvt
