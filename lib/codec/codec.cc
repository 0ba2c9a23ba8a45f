#include "codec/codec.h"

#include <cmath>

#include "absl/strings/match.h"
#include "base/options.h"
#include "codec/transform/transform.h"

namespace kvt {
namespace {

// Codecs that undo RoPE take a token's position from its place.
Status NeedsConsecutive(absl::string_view codec) {
  return Error(KVT_ERR_UNSUPPORTED, absl::StrCat("codec ", codec, " on selected tokens; take another"));
}

constexpr uint32_t kDefaultGroup = 32;
// Leaves room for the largest header.
constexpr uint64_t kPayloadBytesMax = KVT_FRAME_BYTES_MAX - 2 * uint64_t{kFrameHeaderBytesMax};

bool IsFp8(uint32_t element) { return element == KVT_ELEMENT_FP8_E4M3 || element == KVT_ELEMENT_FP8_E5M2; }

Status Mismatch(absl::string_view field, absl::string_view frame, absl::string_view wanted) {
  return Error(KVT_ERR_MISMATCH, absl::StrCat("frame: ", field, " is ", frame, ", expected ", wanted));
}

std::string Range(uint64_t begin, uint64_t end) { return absl::StrCat("[", begin, ", ", end, ")"); }

std::vector<uint32_t> TurnsOf(const Model& model) {
  const Rope& rope = model.rope();
  if (rope.style == KVT_ROPE_NONE) return {};
  std::vector<uint32_t> turns(model.head_dim(0));
  const uint32_t pairs = rope.dims / 2;
  for (uint32_t i = 0; i < pairs; ++i) {
    double radians = std::pow(rope.base, -2.0 * i / rope.dims);
    if (!rope.factors.empty()) radians /= rope.factors[i];
    // A multiple of 2^-24 of a turn, whatever the last bits of pow are.
    const double turn = radians / (2 * M_PI);
    const auto step = static_cast<uint32_t>(std::lrint((turn - std::floor(turn)) * 0x1p24)) << 8;
    const bool interleaved = rope.style == KVT_ROPE_INTERLEAVED;
    turns[rope.offset + (interleaved ? 2 * i : i)] = step;
    turns[rope.offset + (interleaved ? 2 * i + 1 : i + pairs)] = step;
  }
  return turns;
}

StatusOr<Bytes> ProfileOf(const kvt_codec_options_t& options) {
  if (options.profile == nullptr && options.profile_len != 0) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_codec_options.profile is NULL but profile_len is ", options.profile_len));
  }
  return Bytes(options.profile, options.profile_len);
}

}  // namespace

Codec::Codec(std::shared_ptr<const Model> model, SegmentParameters parameters,
             std::unique_ptr<const SegmentFormat> segments, std::unique_ptr<const Transform> transform)
    : model_(std::move(model)),
      parameters_(std::move(parameters)),
      turns_(TurnsOf(*model_)),
      segments_(std::move(segments)),
      transform_(std::move(transform)) {}

Codec::~Codec() = default;

StatusOr<std::shared_ptr<const Codec>> Codec::Create(std::shared_ptr<const Model> model,
                                                     const kvt_codec_options_t& options) {
  if (options.name == nullptr && options.name_len != 0) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_codec_options.name is NULL but name_len is ", options.name_len));
  }
  SegmentParameters parameters;
  parameters.name = "raw";
  if (options.name_len != 0) {
    KVT_ASSIGN_OR_RETURN(const absl::string_view name,
                         ReadText("kvt_codec_options.name", options.name, options.name_len));
    parameters.name = std::string(name);
  }
  if (absl::StartsWith(parameters.name, "kivi")) {
    parameters.group_tokens = options.group_tokens == 0 ? kDefaultGroup : options.group_tokens;
    parameters.group_channels = options.group_channels == 0 ? kDefaultGroup : options.group_channels;
  }
  std::unique_ptr<const SegmentFormat> segments;
  std::unique_ptr<const Transform> transform;
  if (const auto kind = Transform::KindOf(parameters.name)) {
    KVT_ASSIGN_OR_RETURN(const Bytes profile, ProfileOf(options));
    KVT_ASSIGN_OR_RETURN(
        transform,
        Transform::Create(*model, profile, {*kind, options.ratio, options.exempt, options.quantiser}));
  } else {
    for (const auto& [field, value] :
         {std::pair("exempt", options.exempt), std::pair("quantiser", options.quantiser)}) {
      if (value == 0) continue;
      return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("kvt_codec_options.", field, " is ", value,
                                                          ", codec ", parameters.name, " takes 0"));
    }
    KVT_ASSIGN_OR_RETURN(segments, MakeSegmentCodec(parameters, KVT_ERR_INVALID_ARGUMENT));
  }
  if ((transform != nullptr || segments->lossy()) && IsFp8(model->element())) {
    return Error(KVT_ERR_UNSUPPORTED, absl::StrCat("codec ", parameters.name, " on rows of ",
                                                   ElementName(model->element()), "; use raw"));
  }
  return std::shared_ptr<const Codec>(
      new Codec(std::move(model), std::move(parameters), std::move(segments), std::move(transform)));
}

Status Codec::CheckElements(bool lossy, const View& view) const {
  const bool fp8 = IsFp8(view.element()) || IsFp8(model_->element());
  if (!fp8 || (!lossy && view.element() == model_->element())) return OkStatus();
  return Error(KVT_ERR_UNSUPPORTED,
               absl::StrCat("rows of ", ElementName(view.element()), " for a model of ",
                            ElementName(model_->element()), ": fp8 is moved as it is, never converted"));
}

SegmentShape Codec::Shape(const FrameHeader& header, uint32_t layer, uint32_t stream) const {
  SegmentShape shape;
  shape.third = std::min(3 * layer / model_->layers(), 2u);
  shape.stream = stream;
  shape.element = header.element;
  shape.tokens = header.tokens;
  shape.exempt_first = header.exempt_first;
  shape.exempt_last = header.exempt_last;
  shape.heads = header.head_end - header.head_begin;
  shape.dim = model_->head_dim(stream);
  if (stream == 0 && !turns_.empty()) shape.turns = turns_.data();
  return shape;
}

StatusOr<FrameHeader> Codec::Plan(const View& view, const FrameSpec& spec) const {
  const bool lossy = transform_ != nullptr || segments_->lossy();
  KVT_RETURN_IF_ERROR(CheckElements(lossy, view));
  FrameHeader header;
  header.model = model_->fingerprint();
  header.key = spec.key;
  header.namespace_digest = spec.namespace_digest;
  header.layer_begin = spec.layer_begin;
  header.layer_end = spec.layer_end;
  header.head_begin = view.head_begin();
  header.head_end = view.head_end();
  header.streams = model_->streams();
  header.element = model_->element();
  header.codec = parameters_.name;
  header.group_tokens = parameters_.group_tokens;
  header.group_channels = parameters_.group_channels;
  header.first_position = spec.FirstPosition(view);
  header.tokens = spec.token_count;
  header.position_offsets = spec.position_offsets;
  if (transform_ != nullptr && !spec.position_offsets.empty()) return NeedsConsecutive(parameters_.name);
  if (lossy) {
    header.exempt_first = spec.exempt_first;
    header.exempt_last = spec.exempt_last;
  }
  KVT_RETURN_IF_ERROR(transform_ != nullptr ? transform_->PlanFrame(*model_, &header)
                                            : PlanSegments(&header));
  if (header.payload_length > kPayloadBytesMax) {
    return Error(KVT_ERR_LIMIT, absl::StrCat("the frame of ", header.tokens, " tokens is longer than ",
                                             kPayloadBytesMax, " bytes"));
  }
  return header;
}

bool Codec::Holds(Bytes front, const View& view, const FrameSpec& spec) const {
  const auto there = ParseFront(front);
  const auto wanted = Plan(view, spec);
  return there.ok() && wanted.ok() && Covers(*there, *wanted);
}

Status Codec::PlanSegments(FrameHeader* header) const {
  header->segments.reserve(size_t{header->layer_end - header->layer_begin} * header->streams);
  for (uint32_t layer = header->layer_begin; layer < header->layer_end; ++layer) {
    for (uint32_t stream = 0; stream < header->streams; ++stream) {
      const SegmentShape shape = Shape(*header, layer, stream);
      Segment segment;
      segment.stream = stream;
      segment.layer_begin = layer;
      segment.layer_end = layer + 1;
      segment.head_begin = header->head_begin;
      segment.head_end = header->head_end;
      segment.offset = header->payload_length;
      segment.stored_length = segments_->StoredBytes(shape);
      segment.decoded_length = shape.decoded_bytes();
      header->payload_length = AlignFrame(header->payload_length + segment.stored_length);
      if (header->payload_length > kPayloadBytesMax) break;
      header->segments.push_back(segment);
    }
  }
  return OkStatus();
}

StatusOr<uint64_t> Codec::Bound(const View& view, const FrameSpec& spec) const {
  KVT_ASSIGN_OR_RETURN(const FrameHeader header, Plan(view, spec));
  return AlignFrame(kFramePrefixBytes + EncodeHeader(header).size()) + header.payload_length;
}

StatusOr<CodecReport> Codec::Encode(const View& view, const FrameSpec& spec, MutableBytes out) const {
  KVT_ASSIGN_OR_RETURN(FrameHeader header, Plan(view, spec));
  header.payload_offset = AlignFrame(kFramePrefixBytes + EncodeHeader(header).size());
  CodecReport report;
  report.frame_bytes = header.payload_offset + header.payload_length;
  if (out.size() < report.frame_bytes) {
    return Error(KVT_ERR_BUFFER_TOO_SMALL,
                 absl::StrCat("cap is ", out.size(), ", needed are ", report.frame_bytes, " bytes"));
  }
  uint8_t* payload = out.data() + header.payload_offset;
  if (transform_ != nullptr) {
    transform_->Encode(*model_, view, spec, &header, payload, &report);
  } else {
    EncodeSegments(view, spec, &header, payload, &report);
  }
  report.frame_bytes = header.payload_offset + header.payload_length;
  WriteFrameFront(EncodeHeader(header), header.payload_length, !header.position_offsets.empty(), out.data());
  report.segments = static_cast<uint32_t>(header.segments.size());
  report.checksums = 2 + header.segments.size();
  return report;
}

void Codec::EncodeSegments(const View& view, const FrameSpec& spec, FrameHeader* header, uint8_t* payload,
                           CodecReport* report) const {
  RowWindow rows(view, *model_);
  header->payload_length = 0;
  for (Segment& segment : header->segments) {
    rows.Select(segment.layer_begin, segment.stream, spec.token_begin);
    segment.offset = header->payload_length;
    uint8_t* stored = payload + segment.offset;
    kernels::HashCopy hash(nullptr);
    segment.stored_length = segments_->EncodeSegment(Shape(*header, segment.layer_begin, segment.stream),
                                                     rows, stored, hash, &report->nonfinite);
    segment.checksum = hash.Digest();
    const uint64_t end = segment.offset + segment.stored_length;
    header->payload_length = AlignFrame(end);
    std::memset(payload + end, 0, header->payload_length - end);
    report->decoded_bytes += header->tokens * rows.row_bytes();
  }
}

Status Codec::CheckIdentity(const FrameHeader& header, const FrameSpec& spec, const View& view) const {
  if (header.model != model_->fingerprint())
    return Mismatch("model fingerprint", Hex(Bytes(header.model)), Hex(Bytes(model_->fingerprint())));
  if (header.element != model_->element() || header.streams != model_->streams()) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: element ", header.element, " and ", header.streams,
                                               " streams are not those of the model that it names"));
  }
  if (header.head_begin != view.head_begin() || header.head_end != view.head_end()) {
    return Mismatch("shard's heads", Range(header.head_begin, header.head_end),
                    Range(view.head_begin(), view.head_end()));
  }
  if (header.layer_begin > spec.layer_begin || header.layer_end < spec.layer_end) {
    return Mismatch("shard's layers", Range(header.layer_begin, header.layer_end),
                    absl::StrCat("to hold ", Range(spec.layer_begin, spec.layer_end)));
  }
  if (header.key != spec.key) return Mismatch("key", header.key.ToString(), spec.key.ToString());
  if (header.namespace_digest != spec.namespace_digest) {
    return Mismatch("namespace digest", Hex(Bytes(header.namespace_digest)),
                    Hex(Bytes(spec.namespace_digest)));
  }
  const uint64_t position = spec.FirstPosition(view);
  if (header.first_position != position)
    return Mismatch("first position", absl::StrCat(header.first_position), absl::StrCat(position));
  if (header.tokens != spec.token_count)
    return Mismatch("token count", absl::StrCat(header.tokens), absl::StrCat(spec.token_count));
  // Where the lists differ, so do positions: a list of consecutive ones does not exist.
  const bool same_positions = header.position_offsets == spec.position_offsets;
  for (size_t t = 0; !same_positions; ++t) {
    const uint64_t there = header.Position(t);
    const uint64_t wanted = position + (spec.position_offsets.empty() ? t : spec.position_offsets[t]);
    if (there == wanted) continue;
    return Mismatch(absl::StrCat("position of token ", t), absl::StrCat(there), absl::StrCat(wanted));
  }
  const bool has_profile =
      transform_ != nullptr && AsBytes(header.profile) == Bytes(transform_->profile().fingerprint());
  if (!header.profile.empty() && !has_profile) {
    return Error(KVT_ERR_PROFILE_MISSING, absl::StrCat("frame: codec ", header.codec, " needs profile ",
                                                       Hex(AsBytes(header.profile))));
  }
  return OkStatus();
}

StatusOr<CodecReport> Codec::DecodeTransform(const FrameHeader& header, Bytes frame, const FrameSpec& spec,
                                             const View& view) const {
  if (header.profile.empty())
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: codec ", header.codec, ", but no profile is named"));
  if (!header.position_offsets.empty()) return NeedsConsecutive(header.codec);
  KVT_RETURN_IF_ERROR(CheckElements(/*lossy=*/true, view));
  CodecReport report;
  report.frame_bytes = frame.size();
  KVT_RETURN_IF_ERROR(transform_->Decode(*model_, header, frame, spec, view, &report));
  return report;
}

StatusOr<size_t> Codec::CheckSegments(const FrameHeader& header, const SegmentFormat& segments,
                                      const FrameSpec& spec) const {
  const size_t expected = size_t{header.layer_end - header.layer_begin} * header.streams;
  if (header.segments.size() != expected) {
    return Error(KVT_ERR_CORRUPT,
                 absl::StrCat("frame: codec ", header.codec, " has one segment a layer and stream, ",
                              expected, ", not ", header.segments.size()));
  }
  const size_t first = size_t{spec.layer_begin - header.layer_begin} * header.streams;
  const size_t count = size_t{spec.layer_end - spec.layer_begin} * header.streams;
  for (size_t i = first; i < first + count; ++i) {
    const Segment& segment = header.segments[i];
    const uint32_t layer = header.layer_begin + static_cast<uint32_t>(i / header.streams);
    const uint32_t stream = static_cast<uint32_t>(i % header.streams);
    if (segment.stream != stream || segment.layer_begin != layer || segment.layer_end != layer + 1 ||
        segment.head_begin != header.head_begin || segment.head_end != header.head_end) {
      return Error(KVT_ERR_CORRUPT,
                   absl::StrCat("frame: segment ", i, " is of layers ",
                                Range(segment.layer_begin, segment.layer_end), " and stream ", segment.stream,
                                ", expected layer ", layer, ", stream ", stream, " and all heads"));
    }
    const SegmentShape shape = Shape(header, layer, stream);
    const uint64_t least = segments.StoredBytesMin(shape), most = segments.StoredBytes(shape);
    if (segment.stored_length < least || segment.stored_length > most) {
      return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: segment ", i, ": stored length is ",
                                                 segment.stored_length, ", codec ", header.codec, " stores ",
                                                 least == most ? "" : absl::StrCat(least, " to "), most));
    }
    if (segment.decoded_length != shape.decoded_bytes()) {
      return Error(KVT_ERR_CORRUPT,
                   absl::StrCat("frame: segment ", i, ": decoded length is ", segment.decoded_length,
                                ", expected ", shape.decoded_bytes()));
    }
  }
  return first;
}

StatusOr<CodecReport> Codec::Decode(Bytes frame, const FrameSpec& spec, const View& view) const {
  KVT_ASSIGN_OR_RETURN(const FrameHeader header, ParseFrame(frame));
  KVT_RETURN_IF_ERROR(CheckIdentity(header, spec, view));
  if (Transform::KindOf(header.codec).has_value()) return DecodeTransform(header, frame, spec, view);
  KVT_ASSIGN_OR_RETURN(
      const auto segments,
      MakeSegmentCodec({header.codec, header.group_tokens, header.group_channels}, KVT_ERR_CORRUPT));
  KVT_RETURN_IF_ERROR(CheckElements(segments->lossy(), view));
  KVT_ASSIGN_OR_RETURN(const size_t first, CheckSegments(header, *segments, spec));

  CodecReport report;
  report.frame_bytes = frame.size();
  report.segments = (spec.layer_end - spec.layer_begin) * header.streams;
  report.checksums = 2 + uint64_t{report.segments};
  RowWindow rows(view, *model_);
  for (size_t i = first; i < first + report.segments; ++i) {
    const Segment& segment = header.segments[i];
    rows.Select(segment.layer_begin, segment.stream, spec.token_begin);
    kernels::HashCopy hash(nullptr);
    const Status status = segments->DecodeSegment(Shape(header, segment.layer_begin, segment.stream),
                                                  header.Stored(frame, segment), rows, hash);
    const auto name = [&] {
      return absl::StrCat("frame: segment ", i, " (layer ", segment.layer_begin, ", stream ", segment.stream,
                          ")");
    };
    if (hash.Digest() != segment.checksum)
      return Error(KVT_ERR_CORRUPT, absl::StrCat(name(), ": its bytes do not have its checksum"));
    if (!status.ok()) return Annotate(status, name());
    KVT_RETURN_IF_ERROR(header.CheckPadding(frame, i));
    report.decoded_bytes += header.tokens * rows.row_bytes();
  }
  return report;
}

}  // namespace kvt
