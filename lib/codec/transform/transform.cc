#include "codec/transform/transform.h"

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

uint64_t DecodedBytes(const GroupPlan& group, const SegmentShape& shape) {
  return (group.group->layer_end - group.group->layer_begin) * shape.decoded_bytes();
}

std::string Range(uint64_t begin, uint64_t end) { return absl::StrCat("[", begin, ", ", end, ")"); }

}  // namespace

Transform::Transform(std::shared_ptr<const Profile> profile, uint32_t ratio)
    : profile_(std::move(profile)), ratio_(ratio) {}

StatusOr<std::unique_ptr<const Transform>> Transform::Create(const Model& model, Bytes profile,
                                                             uint32_t ratio) {
  if (ratio < kRatioMin || ratio > kRatioMax) {
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("codec transform: ratio is ", ratio, ", expected ",
                                                        kRatioMin, " to ", kRatioMax));
  }
  if (profile.empty())
    return Error(KVT_ERR_INVALID_ARGUMENT, "codec transform: profile is empty; it needs a calibrated one");
  KVT_ASSIGN_OR_RETURN(std::shared_ptr<const Profile> parsed, Profile::Parse(profile));
  KVT_RETURN_IF_ERROR(parsed->CheckModel(model));
  if (ratio < parsed->facts().ratio_min) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("codec transform: ratio is ", ratio, ", the profile was calibrated for ",
                              parsed->facts().ratio_min, " to ", kRatioMax));
  }
  std::unique_ptr<const Transform> transform(new Transform(std::move(parsed), ratio));
  transform->PlanAt(ratio);
  return transform;
}

std::shared_ptr<const Plan> Transform::PlanAt(uint32_t ratio) const {
  MutexLock lock(&mu_);
  if (plans_[ratio] == nullptr) plans_[ratio] = Plan::Create(profile_, ratio);
  return plans_[ratio];
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
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("codec transform: heads are ", Range(header.head_begin, header.head_end),
                              ", the profile was calibrated for ", Range(facts.head_begin, facts.head_end)));
  }
  if (*begin < *end && *begin < groups.size() && groups[*end - 1].layer_end == header.layer_end)
    return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat("codec transform: layers ", Range(header.layer_begin, header.layer_end),
                            " are not whole groups of the profile, which are ", layers));
}

Status Transform::PlanFrame(const Model& model, FrameHeader* header) const {
  size_t begin, end;
  KVT_RETURN_IF_ERROR(CheckLayers(*header, &begin, &end));
  if (header->tokens > UINT32_MAX) {
    return Error(KVT_ERR_LIMIT,
                 absl::StrCat("codec transform: ", header->tokens, " tokens, the most are ", UINT32_MAX));
  }
  header->profile = std::string(AsText(Bytes(profile_->fingerprint())));
  header->ratio = ratio_;
  const auto plan = PlanAt(ratio_);
  for (size_t i = begin; i < end; ++i) {
    const GroupPlan& group = plan->groups()[i];
    const SegmentShape shape = ShapeOf(*header, model, group.group->stream);
    Segment segment;
    segment.stream = shape.stream;
    segment.layer_begin = group.group->layer_begin;
    segment.layer_end = group.group->layer_end;
    segment.head_begin = header->head_begin;
    segment.head_end = header->head_end;
    segment.offset = header->payload_length;
    segment.stored_length = SegmentLayout(group, shape).BytesMax(group, shape);
    segment.decoded_length = DecodedBytes(group, shape);
    header->payload_length = AlignFrame(header->payload_length + segment.stored_length);
    header->segments.push_back(segment);
  }
  return OkStatus();
}

void Transform::Encode(const Model& model, const View& view, const FrameSpec& spec, FrameHeader* header,
                       uint8_t* payload, CodecReport* report) const {
  const auto plan = PlanAt(header->ratio);
  const uint64_t coded = header->tokens - header->exempt_first - header->exempt_last;
  const TurnTable turns(model.rope(), header->first_position + header->exempt_first, coded, /*undo=*/true);
  RowWindow rows(view, model);
  SegmentCoder coder(*plan, turns, &rows, spec.token_begin);
  size_t group = 0;
  header->payload_length = 0;
  for (Segment& segment : header->segments) {
    while (plan->groups()[group].group->layer_begin != segment.layer_begin ||
           plan->groups()[group].group->stream != segment.stream) {
      ++group;
    }
    const SegmentShape shape = ShapeOf(*header, model, segment.stream);
    segment.offset = header->payload_length;
    uint8_t* stored = payload + segment.offset;
    segment.stored_length = coder.Encode(plan->groups()[group], shape, stored, &report->nonfinite);
    segment.checksum = kernels::Hash(stored, segment.stored_length);
    const uint64_t end = segment.offset + segment.stored_length;
    header->payload_length = AlignFrame(end);
    std::memset(payload + end, 0, header->payload_length - end);
    report->decoded_bytes += header->tokens * rows.row_bytes() * (segment.layer_end - segment.layer_begin);
  }
}

Status Transform::Decode(const Model& model, const FrameHeader& header, Bytes frame, const FrameSpec& spec,
                         const View& view, CodecReport* report) const {
  if (header.ratio < profile_->facts().ratio_min || header.ratio > kRatioMax) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: ratio is ", header.ratio, ", its profile is for ",
                                               profile_->facts().ratio_min, " to ", kRatioMax));
  }
  size_t begin, end;
  if (const Status status = CheckLayers(header, &begin, &end); !status.ok())
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: ", status.message()));
  if (header.segments.size() != end - begin || header.tokens > UINT32_MAX) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame: ", header.segments.size(), " segments and ",
                                               header.tokens, " tokens, expected ", end - begin,
                                               " segments and at most ", UINT32_MAX, " tokens"));
  }
  const auto plan = PlanAt(header.ratio);
  const uint64_t coded = header.tokens - header.exempt_first - header.exempt_last;
  const TurnTable turns(model.rope(), header.first_position + header.exempt_first, coded, /*undo=*/false);
  RowWindow rows(view, model);
  SegmentCoder coder(*plan, turns, &rows, spec.token_begin);
  report->checksums = 2;
  for (size_t i = 0; i < header.segments.size(); ++i) {
    const Segment& segment = header.segments[i];
    const GroupPlan& group = plan->groups()[begin + i];
    const uint32_t first = std::max(segment.layer_begin, spec.layer_begin);
    const uint32_t last = std::min(segment.layer_end, spec.layer_end);
    const std::string name = absl::StrCat("frame: segment ", i);
    const SegmentShape shape = ShapeOf(header, model, group.group->stream);
    const uint64_t least = SegmentLayout(group, shape).escapes;
    if (segment.stream != shape.stream || segment.layer_begin != group.group->layer_begin ||
        segment.layer_end != group.group->layer_end || segment.head_begin != header.head_begin ||
        segment.head_end != header.head_end || segment.stored_length < least ||
        segment.decoded_length != DecodedBytes(group, shape)) {
      return Error(
          KVT_ERR_CORRUPT,
          absl::StrCat(name, ": layers ", Range(segment.layer_begin, segment.layer_end), " of stream ",
                       segment.stream, " in ", segment.stored_length, " bytes, decoded ",
                       segment.decoded_length, ", expected layers ",
                       Range(group.group->layer_begin, group.group->layer_end), " of stream ", shape.stream,
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
    if (const Status status = coder.Decode(group, shape, stored, first, last); !status.ok())
      return Annotate(status, name);
    ++report->segments;
    ++report->checksums;
    report->decoded_bytes += header.tokens * rows.row_bytes() * (last - first);
  }
  return OkStatus();
}

}  // namespace kvt
