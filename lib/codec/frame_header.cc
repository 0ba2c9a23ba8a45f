#include "codec/frame_header.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "codec/frame_prefix.h"
#include "cpu/hash_copy.h"
#include "model/model.h"
#include "schema/generated/frame_generated.h"

namespace kvt {
namespace {

Status Corrupt(absl::string_view text) { return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: ", text)); }

template <size_t N>
Status ReadFixed(const flatbuffers::Vector<uint8_t>* field, absl::string_view name,
                 std::array<uint8_t, N>* out) {
  if (field == nullptr || field->size() != N) {
    return Corrupt(absl::StrCat("header field ", name, " has ", field == nullptr ? 0 : field->size(),
                                " bytes, expected ", N));
  }
  std::memcpy(out->data(), field->data(), N);
  return OkStatus();
}

// `segment`: whose range it is; none for the header's own.
Status CheckRange(absl::string_view name, uint64_t begin, uint64_t end, uint64_t low, uint64_t high,
                  std::optional<size_t> segment = std::nullopt) {
  if (begin >= end || begin < low || end > high) {
    return Corrupt(absl::StrCat(segment.has_value() ? absl::StrCat("segment ", *segment, ": ") : "", name,
                                " [", begin, ", ", end, ") is empty or outside of [", low, ", ", high, ")"));
  }
  return OkStatus();
}

// Names are what a program may print as they are.
bool IsCodecName(absl::string_view name) {
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Ranges that are the frame's first tokens, its last ones, or both.
Status ReadExempt(const schema::FrameHeader& read, FrameHeader* header) {
  if (read.exempt() == nullptr) return OkStatus();
  if (read.exempt()->size() > 2)
    return Corrupt(absl::StrCat("exempt has ", read.exempt()->size(), " ranges"));
  for (const schema::TokenRange* range : *read.exempt()) {
    KVT_RETURN_IF_ERROR(CheckRange("exempt tokens", range->begin(), range->end(), 0, header->tokens));
    if (range->begin() == 0 && header->exempt_first == 0 && header->exempt_last == 0) {
      header->exempt_first = range->end();
    } else if (range->end() == header->tokens && header->exempt_last == 0 &&
               range->begin() >= header->exempt_first) {
      header->exempt_last = range->end() - range->begin();
    } else {
      return Corrupt(absl::StrCat("exempt tokens [", range->begin(), ", ", range->end(),
                                  ") are neither the first nor the last of ", header->tokens));
    }
  }
  return OkStatus();
}

Status ReadPositions(const schema::FrameHeader& read, FrameHeader* header) {
  const auto* offsets = read.position_offsets();
  if (offsets == nullptr) return OkStatus();
  if (offsets->size() != header->tokens) {
    return Corrupt(absl::StrCat(offsets->size(), " position offsets for ", header->tokens, " tokens"));
  }
  for (flatbuffers::uoffset_t i = 0; i < offsets->size(); ++i) {
    const uint32_t offset = offsets->Get(i);
    if (i == 0 ? offset != 0 : offset <= header->position_offsets.back()) {
      return Corrupt(absl::StrCat("position offset ", i, " is ", offset, ", expected ",
                                  i == 0 ? "0" : "more than the one before"));
    }
    header->position_offsets.push_back(offset);
  }
  const uint64_t last = header->position_offsets.back();
  if (last == header->tokens - 1) return Corrupt("position offsets without a gap");
  if (last >= UINT64_MAX - header->first_position) {
    return Corrupt(
        absl::StrCat("first position ", header->first_position, " and position offset ", last, " overflow"));
  }
  return OkStatus();
}

Status ReadSegments(const schema::FrameHeader& read, FrameHeader* header) {
  const auto* table = read.segments();
  if (table == nullptr || table->size() == 0) return Corrupt("the segment table is empty");
  header->segments.reserve(table->size());
  const uint64_t cells =
      uint64_t{header->layer_end - header->layer_begin} * (header->head_end - header->head_begin);
  std::vector<uint64_t> covered(header->streams, 0);
  uint64_t next = 0;
  for (const schema::Segment* entry : *table) {
    Segment segment;
    segment.stream = entry->stream();
    segment.layer_begin = entry->layer_begin();
    segment.layer_end = entry->layer_end();
    segment.head_begin = entry->head_begin();
    segment.head_end = entry->head_end();
    segment.offset = entry->offset();
    segment.stored_length = entry->stored_length();
    segment.decoded_length = entry->decoded_length();
    segment.checksum = entry->checksum();
    const size_t n = header->segments.size();
    if (segment.stream >= header->streams) {
      return Corrupt(
          absl::StrCat("segment ", n, ": stream is ", segment.stream, ", the frame has ", header->streams));
    }
    KVT_RETURN_IF_ERROR(CheckRange("layers", segment.layer_begin, segment.layer_end, header->layer_begin,
                                   header->layer_end, n));
    KVT_RETURN_IF_ERROR(
        CheckRange("heads", segment.head_begin, segment.head_end, header->head_begin, header->head_end, n));
    if (segment.offset != next) {
      return Corrupt(
          absl::StrCat("segment ", n, ": offset is ", segment.offset, ", the one before ends at ", next));
    }
    if (segment.stored_length > header->payload_length - next) {
      return Corrupt(absl::StrCat("segment ", n, ": stored length ", segment.stored_length, " at offset ",
                                  next, " goes beyond the payload of ", header->payload_length));
    }
    // The payload's length is a multiple of the alignment, so this cannot go beyond it.
    next = AlignFrame(next + segment.stored_length);
    covered[segment.stream] +=
        uint64_t{segment.layer_end - segment.layer_begin} * (segment.head_end - segment.head_begin);
    header->segments.push_back(segment);
  }
  if (next != header->payload_length) {
    return Corrupt(absl::StrCat("the segments end at ", next, ", the payload at ", header->payload_length));
  }
  for (size_t stream = 0; stream < covered.size(); ++stream) {
    if (covered[stream] != cells) {
      return Corrupt(absl::StrCat("the segments of stream ", stream, " hold ", covered[stream],
                                  " pairs of layer and head, the frame has ", cells));
    }
  }
  return OkStatus();
}

Status ReadTable(const schema::FrameHeader& read, FrameHeader* header) {
  KVT_RETURN_IF_ERROR(ReadFixed(read.model(), "model", &header->model));
  KVT_RETURN_IF_ERROR(ReadFixed(read.key(), "key", &header->key.bytes));
  KVT_RETURN_IF_ERROR(ReadFixed(read.namespace_digest(), "namespace_digest", &header->namespace_digest));
  if (read.profile() != nullptr && read.profile()->size() != 0) {
    std::array<uint8_t, KVT_FINGERPRINT_BYTES> profile;
    KVT_RETURN_IF_ERROR(ReadFixed(read.profile(), "profile", &profile));
    header->profile = std::string(AsText(Bytes(profile)));
  }
  header->layer_begin = read.layer_begin();
  header->layer_end = read.layer_end();
  header->head_begin = read.head_begin();
  header->head_end = read.head_end();
  header->streams = read.streams();
  header->element = read.element();
  KVT_RETURN_IF_ERROR(CheckRange("layers", header->layer_begin, header->layer_end, 0, 1024));
  KVT_RETURN_IF_ERROR(CheckRange("heads", header->head_begin, header->head_end, 0, 1024));
  if (header->streams < 1 || header->streams > 2)
    return Corrupt(absl::StrCat("streams are ", header->streams, ", expected 1 or 2"));
  if (ElementBytes(header->element) == 0)
    return Corrupt(absl::StrCat("element is ", header->element, ", which is none"));
  if (read.codec() == nullptr || !IsCodecName({read.codec()->c_str(), read.codec()->size()}))
    return Corrupt("the codec's name is missing, too long or has other characters than a-z, 0-9, _ and -");
  header->codec = read.codec()->str();
  header->group_tokens = read.group_tokens();
  header->group_channels = read.group_channels();
  header->ratio = read.ratio();
  header->first_position = read.first_position();
  header->tokens = read.tokens();
  if (header->tokens == 0 || header->tokens > kFrameTokensMax)
    return Corrupt(absl::StrCat("tokens are ", header->tokens, ", expected 1 to ", kFrameTokensMax));
  if (header->first_position > UINT64_MAX - header->tokens) {
    return Corrupt(
        absl::StrCat("first position ", header->first_position, " and ", header->tokens, " tokens overflow"));
  }
  KVT_RETURN_IF_ERROR(ReadPositions(read, header));
  KVT_RETURN_IF_ERROR(ReadExempt(read, header));
  return ReadSegments(read, header);
}

}  // namespace

Status CheckZero(Bytes padding, absl::string_view what) {
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] != 0) {
      return Error(KVT_ERR_CORRUPT, absl::StrCat(what, ": byte ", i, " is ", padding[i], ", expected 0"));
    }
  }
  return OkStatus();
}

Status FrameHeader::CheckPadding(Bytes frame, size_t i) const {
  const Bytes padding = Padding(frame, segments[i]);
  // Nearly always: no text is made for it.
  if (std::all_of(padding.begin(), padding.end(), [](uint8_t byte) { return byte == 0; })) return OkStatus();
  return CheckZero(padding, absl::StrCat("frame: padding of segment ", i));
}

StatusOr<FrameHeader> ParseFrame(Bytes frame) {
  KVT_ASSIGN_OR_RETURN(const FramePrefix prefix, ReadFramePrefix(frame));
  if (frame.size() != prefix.FrameBytes()) {
    return Corrupt(absl::StrCat(frame.size(), " bytes, the prefix says ", prefix.FrameBytes()));
  }
  return ParseFront(frame);
}

StatusOr<uint64_t> FrameFrontBytes(Bytes start) {
  KVT_ASSIGN_OR_RETURN(const FramePrefix prefix, ReadFramePrefix(start));
  return prefix.PayloadOffset();
}

bool Covers(const FrameHeader& there, const FrameHeader& wanted) {
  const auto form = [](const FrameHeader& h) {
    return std::tie(h.model, h.profile, h.key, h.namespace_digest, h.head_begin, h.head_end, h.streams,
                    h.element, h.codec, h.group_tokens, h.group_channels, h.ratio, h.first_position, h.tokens,
                    h.position_offsets);
  };
  return form(there) == form(wanted) && there.layer_begin <= wanted.layer_begin &&
         there.layer_end >= wanted.layer_end;
}

StatusOr<FrameHeader> ParseFront(Bytes frame) {
  KVT_ASSIGN_OR_RETURN(const FramePrefix prefix, ReadFramePrefix(frame));
  if (frame.size() < prefix.PayloadOffset())
    return Corrupt(absl::StrCat(frame.size(), " bytes, the header ends at ", prefix.PayloadOffset()));
  Bytes bytes = frame.subspan(kFramePrefixBytes, prefix.header_length);
  if (kernels::Hash(bytes.data(), bytes.size()) != prefix.header_checksum)
    return Corrupt("the header does not have its checksum");
  const uint64_t header_end = kFramePrefixBytes + prefix.header_length;
  KVT_RETURN_IF_ERROR(CheckZero(frame.subspan(header_end, prefix.PayloadOffset() - header_end),
                                "frame: padding of the header"));
  // FlatBuffers reads in place and so needs aligned bytes.
  std::vector<uint64_t> aligned;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) != 0) {
    aligned.resize((bytes.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    bytes = Bytes(reinterpret_cast<const uint8_t*>(aligned.data()), bytes.size());
  }
  // A table is at least 4 bytes and its vector's slot 4, so this many can be there without overlap.
  const auto most_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 8 + 1);
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), /*max_depth=*/4, most_tables);
  if (bytes.size() < 8 || !schema::VerifyFrameHeaderBuffer(verifier))
    return Corrupt("the header is not a well-formed FlatBuffers table of kind KVTF");
  FrameHeader header;
  header.payload_offset = prefix.PayloadOffset();
  header.payload_length = prefix.payload_length;
  KVT_RETURN_IF_ERROR(ReadTable(*schema::GetFrameHeader(bytes.data()), &header));
  if (prefix.selected == header.position_offsets.empty()) {
    return Corrupt(absl::StrCat("the prefix says ", prefix.selected ? "selected" : "consecutive",
                                " tokens, the header has ", header.position_offsets.size(),
                                " position offsets"));
  }
  return header;
}

std::string EncodeHeader(const FrameHeader& header) {
  flatbuffers::FlatBufferBuilder builder(512 + header.segments.size() * 64);
  builder.ForceDefaults(true);
  std::vector<flatbuffers::Offset<schema::Segment>> segments;
  segments.reserve(header.segments.size());
  for (const Segment& segment : header.segments) {
    segments.push_back(schema::CreateSegment(
        builder, static_cast<uint8_t>(segment.stream), static_cast<uint16_t>(segment.layer_begin),
        static_cast<uint16_t>(segment.layer_end), static_cast<uint16_t>(segment.head_begin),
        static_cast<uint16_t>(segment.head_end), segment.offset, segment.stored_length,
        segment.decoded_length, segment.checksum));
  }
  std::vector<flatbuffers::Offset<schema::TokenRange>> exempt;
  if (header.exempt_first != 0) exempt.push_back(schema::CreateTokenRange(builder, 0, header.exempt_first));
  if (header.exempt_last != 0) {
    exempt.push_back(schema::CreateTokenRange(builder, header.tokens - header.exempt_last, header.tokens));
  }
  const auto model = builder.CreateVector(header.model.data(), header.model.size());
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> profile;
  if (!header.profile.empty()) {
    const Bytes bytes = AsBytes(header.profile);
    profile = builder.CreateVector(bytes.data(), bytes.size());
  }
  const auto key = builder.CreateVector(header.key.bytes.data(), header.key.bytes.size());
  const auto digest = builder.CreateVector(header.namespace_digest.data(), header.namespace_digest.size());
  const auto codec = builder.CreateString(header.codec);
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<schema::TokenRange>>> ranges;
  if (!exempt.empty()) ranges = builder.CreateVector(exempt);
  flatbuffers::Offset<flatbuffers::Vector<uint32_t>> offsets;
  if (!header.position_offsets.empty()) offsets = builder.CreateVector(header.position_offsets);
  const auto table = builder.CreateVector(segments);
  schema::FinishFrameHeaderBuffer(
      builder, schema::CreateFrameHeader(
                   builder, model, profile, key, digest, static_cast<uint16_t>(header.layer_begin),
                   static_cast<uint16_t>(header.layer_end), static_cast<uint16_t>(header.head_begin),
                   static_cast<uint16_t>(header.head_end), static_cast<uint8_t>(header.streams),
                   static_cast<uint8_t>(header.element), codec, header.group_tokens, header.group_channels,
                   header.first_position, header.tokens, ranges, table, header.ratio, offsets));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

void WriteFrameFront(absl::string_view header, uint64_t payload_length, bool selected, uint8_t* frame) {
  FramePrefix prefix;
  prefix.selected = selected;
  prefix.header_length = static_cast<uint32_t>(header.size());
  prefix.payload_length = payload_length;
  prefix.header_checksum = kernels::Hash(header.data(), header.size());
  WriteFramePrefix(prefix, frame);
  std::memcpy(frame + kFramePrefixBytes, header.data(), header.size());
  const uint64_t end = kFramePrefixBytes + header.size();
  std::memset(frame + end, 0, prefix.PayloadOffset() - end);
}

}  // namespace kvt
