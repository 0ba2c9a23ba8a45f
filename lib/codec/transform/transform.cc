#include "codec/transform/transform.h"

#include "codec/transform/dense.h"
#include "codec/transform/kvtc.h"
#include "codec/transform/segment.h"

namespace kvt {
namespace {

SegmentShape ShapeOf(const FrameHeader& header, const Model& model, uint32_t stream) {
  SegmentShape shape;
  shape.stream = stream;
  shape.element = header.element;
  shape.tokens = header.tokens;
  shape.exempt_first = header.exempt_first;
  shape.exempt_last = header.exempt_last;
  shape.heads = header.head_end - header.head_begin;
  shape.dim = model.head_dim(stream);
  return shape;
}

uint64_t DecodedBytes(const ProfileGroup& group, const SegmentShape& shape) {
  return (group.layer_end - group.layer_begin) * shape.decoded_bytes();
}

std::string Range(uint64_t begin, uint64_t end) { return absl::StrCat("[", begin, ", ", end, ")"); }

struct Kind {
  absl::string_view codec;
  uint32_t ratio_min, ratio_max, ratio_default;
};

// By TransformKind.
constexpr std::array<Kind, kTransformKinds> kKinds = {{{"transform", kRatioMin, kRatioMax, 16},
                                                       {"dense", kDenseRatioMin, kDenseRatioMax, 20},
                                                       {"kvtc", kRatioMin, kTransformRatioMax, 16}}};

const Kind& FactsOf(TransformKind kind) { return kKinds[static_cast<size_t>(kind)]; }

}  // namespace

Transform::Transform(std::shared_ptr<const Profile> profile, const TransformOptions& options)
    : profile_(std::move(profile)), options_(options) {}

std::optional<TransformKind> Transform::KindOf(absl::string_view codec) {
  for (size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i].codec == codec) return static_cast<TransformKind>(i);
  return std::nullopt;
}

Status Transform::CheckRatio(TransformKind kind, uint32_t ratio) const {
  const Kind& facts = FactsOf(kind);
  const uint32_t least = std::max(facts.ratio_min, profile_->facts().ratio_min);
  if (ratio < least || ratio > facts.ratio_max) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("codec ", facts.codec, ": ratio is ", ratio, ", expected ", least, " to ",
                              facts.ratio_max, "; the profile was calibrated for ",
                              profile_->facts().ratio_min, " and more"));
  }
  if (kind == TransformKind::kDense && profile_->facts().dense == nullptr) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 "codec dense: the profile has no tables for it; calibrate the model again");
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<const Transform>> Transform::Create(const Model& model, Bytes profile,
                                                             const TransformOptions& options) {
  const Kind& facts = FactsOf(options.kind);
  if (profile.empty()) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("codec ", facts.codec, ": profile is empty; it needs a calibrated one"));
  }
  const bool dense = options.kind == TransformKind::kDense;
  const struct {
    const char* name;
    uint32_t value, most;
  } choices[] = {{"exempt", options.exempt, KVT_EXEMPT_FINER},
                 {"quantiser", options.quantiser, KVT_QUANTISER_SCALAR}};
  for (const auto& [name, value, most] : choices) {
    if (value <= (dense ? most : 0u)) continue;
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("codec ", facts.codec, ": ", name, " is ", value, ", expected ",
                              dense ? absl::StrCat("0 to ", most) : "0"));
  }
  KVT_ASSIGN_OR_RETURN(std::shared_ptr<const Profile> parsed, Profile::Parse(profile));
  KVT_RETURN_IF_ERROR(parsed->CheckModel(model));
  TransformOptions checked = options;
  if (checked.ratio == 0) checked.ratio = std::max(facts.ratio_default, parsed->facts().ratio_min);
  if (checked.exempt == 0) checked.exempt = KVT_EXEMPT_FINER;
  if (checked.quantiser == 0) checked.quantiser = KVT_QUANTISER_TRELLIS;
  std::unique_ptr<const Transform> transform(new Transform(std::move(parsed), checked));
  KVT_RETURN_IF_ERROR(transform->CheckRatio(checked.kind, checked.ratio));
  transform->ModeOf(checked.kind, checked.ratio);
  return transform;
}

std::shared_ptr<const TransformMode> Transform::ModeOf(TransformKind kind, uint32_t ratio) const {
  // Segments of codecs dense and kvtc say their own step or blocks, so a ratio matters to encoding only.
  if (kind != TransformKind::kFixed) ratio = options_.kind == kind ? options_.ratio : 0;
  MutexLock lock(&mu_);
  std::shared_ptr<const TransformMode>& mode = modes_[static_cast<size_t>(kind)][ratio];
  if (mode == nullptr) {
    if (kind == TransformKind::kDense) {
      mode = std::make_shared<const DenseMode>(
          profile_, DenseOptions{ratio == 0 ? kDenseRatioMin : ratio, static_cast<Exempt>(options_.exempt),
                                 static_cast<Quantiser>(options_.quantiser)});
    } else if (kind == TransformKind::kKvtc) {
      mode = std::make_shared<const KvtcMode>(profile_, ratio);
    } else {
      mode = std::make_shared<const FixedMode>(Plan::Create(profile_, ratio));
    }
  }
  return mode;
}

Status Transform::CheckLayers(const FrameHeader& header, size_t* begin, size_t* end) const {
  const std::vector<ProfileGroup>& groups = profile_->facts().groups;
  const uint32_t streams = profile_->facts().streams;
  *begin = *end = groups.size();
  std::string layers;
  for (size_t i = 0; i < groups.size(); i += streams) {
    absl::StrAppend(&layers, i == 0 ? "" : ", ", Range(groups[i].layer_begin, groups[i].layer_end));
    if (groups[i].layer_begin == header.layer_begin) *begin = i;
    if (groups[i].layer_end == header.layer_end) *end = i + streams;
  }
  const ProfileFacts& facts = profile_->facts();
  if (facts.head_begin != header.head_begin || facts.head_end != header.head_end) {
    return Error(
        KVT_ERR_INVALID_ARGUMENT,
        absl::StrCat("codec ", header.codec, ": heads are ", Range(header.head_begin, header.head_end),
                     ", the profile was calibrated for ", Range(facts.head_begin, facts.head_end)));
  }
  if (*begin < *end && *begin < groups.size() && groups[*end - 1].layer_end == header.layer_end)
    return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat("codec ", header.codec, ": layers ", Range(header.layer_begin, header.layer_end),
                            " are not whole groups of the profile, which are ", layers));
}

Status Transform::PlanFrame(const Model& model, FrameHeader* header) const {
  size_t begin, end;
  KVT_RETURN_IF_ERROR(CheckLayers(*header, &begin, &end));
  if (header->tokens > UINT32_MAX) {
    return Error(KVT_ERR_LIMIT, absl::StrCat("codec ", header->codec, ": ", header->tokens,
                                             " tokens, the most are ", UINT32_MAX));
  }
  header->profile = std::string(AsText(Bytes(profile_->fingerprint())));
  header->ratio = options_.ratio;
  const auto mode = ModeOf(options_.kind, options_.ratio);
  for (size_t i = begin; i < end; ++i) {
    const ProfileGroup& group = profile_->facts().groups[i];
    const SegmentShape shape = ShapeOf(*header, model, group.stream);
    Segment segment;
    segment.stream = shape.stream;
    segment.layer_begin = group.layer_begin;
    segment.layer_end = group.layer_end;
    segment.head_begin = header->head_begin;
    segment.head_end = header->head_end;
    segment.offset = header->payload_length;
    segment.stored_length = mode->StoredBytesMax(i, shape);
    segment.decoded_length = DecodedBytes(group, shape);
    header->payload_length = AlignFrame(header->payload_length + segment.stored_length);
    header->segments.push_back(segment);
  }
  return OkStatus();
}

void Transform::Encode(const Model& model, const View& view, const FrameSpec& spec, FrameHeader* header,
                       uint8_t* payload, CodecReport* report) const {
  const std::vector<ProfileGroup>& groups = profile_->facts().groups;
  const auto mode = ModeOf(options_.kind, header->ratio);
  const TurnTable turns(model.rope(), header->first_position + header->exempt_first,
                        header->tokens - header->exempt_first, /*undo=*/true);
  RowWindow rows(view, model);
  const auto coder = mode->NewCoder({turns, &rows, spec.token_begin, spec.importance});
  size_t group = 0;
  header->payload_length = 0;
  for (Segment& segment : header->segments) {
    while (groups[group].layer_begin != segment.layer_begin || groups[group].stream != segment.stream)
      ++group;
    const SegmentShape shape = ShapeOf(*header, model, segment.stream);
    segment.offset = header->payload_length;
    uint8_t* stored = payload + segment.offset;
    segment.stored_length = coder->Encode(group, shape, stored, &report->nonfinite);
    segment.checksum = kernels::Hash(stored, segment.stored_length);
    const uint64_t end = segment.offset + segment.stored_length;
    header->payload_length = AlignFrame(end);
    std::memset(payload + end, 0, header->payload_length - end);
    report->decoded_bytes += header->tokens * rows.row_bytes() * (segment.layer_end - segment.layer_begin);
  }
}

Status Transform::Decode(const Model& model, const FrameHeader& header, Bytes frame, const FrameSpec& spec,
                         const View& view, CodecReport* report) const {
  const TransformKind kind = *KindOf(header.codec);
  if (const Status status = CheckRatio(kind, header.ratio); !status.ok())
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: ", status.message()));
  size_t begin, end;
  if (const Status status = CheckLayers(header, &begin, &end); !status.ok())
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: ", status.message()));
  if (header.segments.size() != end - begin || header.tokens > UINT32_MAX) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: ", header.segments.size(), " segments and ",
                                               header.tokens, " tokens, expected ", end - begin,
                                               " segments and at most ", UINT32_MAX, " tokens"));
  }
  const auto mode = ModeOf(kind, header.ratio);
  const TurnTable turns(model.rope(), header.first_position + header.exempt_first,
                        header.tokens - header.exempt_first, /*undo=*/false);
  RowWindow rows(view, model);
  const auto coder = mode->NewCoder({turns, &rows, spec.token_begin, nullptr});
  report->checksums = 2;
  for (size_t i = 0; i < header.segments.size(); ++i) {
    const Segment& segment = header.segments[i];
    const ProfileGroup& group = profile_->facts().groups[begin + i];
    const uint32_t first = std::max(segment.layer_begin, spec.layer_begin);
    const uint32_t last = std::min(segment.layer_end, spec.layer_end);
    const std::string name = absl::StrCat("frame: segment ", i);
    const SegmentShape shape = ShapeOf(header, model, group.stream);
    const uint64_t least = mode->StoredBytesMin(begin + i, shape);
    if (segment.stream != shape.stream || segment.layer_begin != group.layer_begin ||
        segment.layer_end != group.layer_end || segment.head_begin != header.head_begin ||
        segment.head_end != header.head_end || segment.stored_length < least ||
        segment.decoded_length != DecodedBytes(group, shape)) {
      return Error(KVT_ERR_CORRUPT,
                   absl::StrCat(name, ": layers ", Range(segment.layer_begin, segment.layer_end),
                                " of stream ", segment.stream, " in ", segment.stored_length,
                                " bytes, decoded ", segment.decoded_length, ", expected layers ",
                                Range(group.layer_begin, group.layer_end), " of stream ", shape.stream,
                                " in at least ", least, ", decoded ", DecodedBytes(group, shape)));
    }
    if (first >= last) continue;
    const Bytes stored = header.Stored(frame, segment);
    if (kernels::Hash(stored.data(), stored.size()) != segment.checksum) {
      return Error(KVT_ERR_CORRUPT,
                   absl::StrCat(name, " (layers ", Range(segment.layer_begin, segment.layer_end), ", stream ",
                                segment.stream, "): its bytes do not have its checksum"));
    }
    KVT_RETURN_IF_ERROR(CheckZero(header.Padding(frame, segment), absl::StrCat(name, ": padding")));
    if (const Status status = coder->Decode(begin + i, shape, stored, first, last); !status.ok())
      return Annotate(status, name);
    ++report->segments;
    ++report->checksums;
    report->decoded_bytes += header.tokens * rows.row_bytes() * (last - first);
  }
  return OkStatus();
}

}  // namespace kvt
