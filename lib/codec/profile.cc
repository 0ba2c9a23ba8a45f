#include "codec/profile.h"

#include <cmath>

#include "base/sha256.h"
#include "codec/profile_layout.h"
#include "codec/transform/dense.h"
#include "codec/transform/metric.h"
#include "codec/transform/plan.h"
#include "codec/transform/products.h"

namespace kvt {
namespace {

Status Corrupt(absl::string_view text) { return Error(KVT_ERR_CORRUPT, absl::StrCat("profile: ", text)); }

Status CheckFinite(absl::string_view name, const std::vector<float>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return Corrupt(absl::StrCat(name, "[", i, "] is ", values[i]));
  }
  return OkStatus();
}

Status CheckSize(absl::string_view name, uint64_t size, uint64_t expected) {
  if (size == expected) return OkStatus();
  return Corrupt(absl::StrCat(name, " has ", size, " values, expected ", expected));
}

// No value of a basis is an infinity or NaN.
Status CheckBasis(absl::string_view name, const uint8_t* basis, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if ((LoadLe<uint16_t>(basis + 2 * i) & 0x7c00u) == 0x7c00u)
      return Corrupt(absl::StrCat(name, ": value ", i, " of the basis is not finite"));
  }
  return OkStatus();
}

Status CheckGroup(const ProfileFacts& facts, const ProfileGroup& group, const std::string& name) {
  const uint64_t layers = group.layer_end - group.layer_begin;
  const uint64_t channels = uint64_t{facts.head_end - facts.head_begin} * facts.dims[group.stream];
  KVT_RETURN_IF_ERROR(CheckSize(absl::StrCat(name, ": mean"), group.mean.size(), layers * channels));
  KVT_RETURN_IF_ERROR(CheckSize(absl::StrCat(name, ": amplitude"), group.amplitude.size(), layers));
  if (group.components() == 0 || group.components() > group.width()) {
    return Corrupt(
        absl::StrCat(name, ": components are ", group.components(), ", expected 1 to ", group.width()));
  }
  KVT_RETURN_IF_ERROR(CheckFinite(absl::StrCat(name, ": mean"), group.mean));
  for (size_t i = 0; i < group.amplitude.size(); ++i) {
    const float value = group.amplitude[i];
    if (!(value >= kAmplitudeMin && value <= kAmplitudeMax)) {
      return Corrupt(absl::StrCat(name, ": amplitude[", i, "] is ", value, ", expected ", kAmplitudeMin,
                                  " to ", kAmplitudeMax));
    }
  }
  float above = kDeviationMax;
  for (size_t i = 0; i < group.deviation.size(); ++i) {
    const float value = group.deviation[i];
    if (!(value >= kDeviationMin && value <= above)) {
      return Corrupt(absl::StrCat(name, ": deviation[", i, "] is ", value, ", expected ", kDeviationMin,
                                  " to ", above, ", the one before"));
    }
    above = value;
  }
  if (facts.dense != nullptr || !group.spread.empty()) {
    KVT_RETURN_IF_ERROR(CheckSize(absl::StrCat(name, ": spread"), group.spread.size(), group.components()));
    KVT_RETURN_IF_ERROR(CheckFinite(absl::StrCat(name, ": spread"), group.spread));
  }
  if (group.leading > group.components())
    return Corrupt(absl::StrCat(name, ": leading is ", group.leading, " of ", group.components()));
  return CheckBasis(name, group.basis, group.components() * group.width());
}

// Makes both ways of the metric.
Status UnpackMetrics(const ProfileFacts& facts, ProfileGroup* group, const std::string& name) {
  if (group->metric.empty()) return OkStatus();
  const size_t dim = facts.dims[group->stream], packed = PackedSize(dim);
  const size_t heads = size_t{group->layer_end - group->layer_begin} * (facts.head_end - facts.head_begin);
  KVT_RETURN_IF_ERROR(CheckSize(absl::StrCat(name, ": metric"), group->metric.size(), heads * packed));
  group->forward.resize(heads * dim * dim);
  group->backward.resize(heads * dim * dim);
  for (size_t i = 0; i < heads; ++i) {
    if (!UnpackMetric(group->metric.data() + i * packed, dim, group->forward.data() + i * dim * dim,
                      group->backward.data() + i * dim * dim)) {
      return Corrupt(absl::StrCat(name, ": the metric of head ", i,
                                  " (layer by layer) is not finite, singular or too large"));
    }
  }
  return OkStatus();
}

// Groups cover the layers one after another, with all streams of each.
Status CheckGroups(const ProfileFacts& facts) {
  uint32_t layer = facts.layer_begin;
  for (size_t i = 0; i < facts.groups.size(); ++i) {
    const ProfileGroup& group = facts.groups[i];
    const std::string name = absl::StrCat("group ", i);
    const uint32_t stream = static_cast<uint32_t>(i % facts.streams);
    const bool as_before = stream == 0 || group.layer_end == facts.groups[i - 1].layer_end;
    if (group.stream != stream || group.layer_begin != layer || group.layer_end <= layer ||
        group.layer_end > facts.layer_end || !as_before) {
      return Corrupt(absl::StrCat(name, ": layers [", group.layer_begin, ", ", group.layer_end,
                                  ") of stream ", group.stream, " are not next after layer ", layer,
                                  ", stream ", stream));
    }
    KVT_RETURN_IF_ERROR(CheckGroup(facts, group, name));
    if (stream + 1 == facts.streams) layer = group.layer_end;
  }
  if (layer != facts.layer_end || facts.groups.size() % facts.streams != 0)
    return Corrupt(absl::StrCat("the groups end at layer ", layer, ", expected ", facts.layer_end));
  return OkStatus();
}

Status CheckBooks(const ProfileFacts& facts) {
  float before = 1;
  for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) {
    const ProfileBook& book = facts.books[bits];
    const std::string name = absl::StrCat("book of ", bits, " bits");
    KVT_RETURN_IF_ERROR(CheckSize(name, book.levels.size(), uint64_t{1} << bits));
    for (size_t i = 0; i < book.levels.size(); ++i) {
      const float value = book.levels[i];
      if (!(std::fabs(value) <= kLevelMax) || (i != 0 && !(value > book.levels[i - 1])))
        return Corrupt(absl::StrCat(name, ": level ", i, " is ", value, ", not ascending or not finite"));
    }
    if (!(book.distortion > 0 && book.distortion <= before)) {
      return Corrupt(
          absl::StrCat(name, ": distortion is ", book.distortion, ", expected above 0, up to ", before));
    }
    before = book.distortion;
  }
  return OkStatus();
}

Status CheckFacts(const ProfileFacts& facts) {
  if (facts.layer_begin >= facts.layer_end || facts.layer_end > 1024) {
    return Corrupt(absl::StrCat("layers [", facts.layer_begin, ", ", facts.layer_end, ") are none"));
  }
  if (facts.head_begin >= facts.head_end || facts.head_end > 1024)
    return Corrupt(absl::StrCat("heads [", facts.head_begin, ", ", facts.head_end, ") are none"));
  for (uint32_t stream = 0; stream < facts.streams; ++stream) {
    if (facts.dims[stream] < 1 || facts.dims[stream] > 8192)
      return Corrupt(absl::StrCat("dims[", stream, "] is ", facts.dims[stream], ", expected 1 to 8192"));
  }
  if (facts.ratio_min < kRatioMin || facts.ratio_min > kRatioMax)
    return Corrupt(
        absl::StrCat("ratio_min is ", facts.ratio_min, ", expected ", kRatioMin, " to ", kRatioMax));
  if (ElementBytes(facts.element) == 0)
    return Corrupt(absl::StrCat("element is ", facts.element, ", which is none"));
  for (const uint32_t part : facts.escapes) {
    if (part > kMillion / 2)
      return Corrupt(absl::StrCat("escapes are ", part, ", the most are ", kMillion / 2));
  }
  KVT_RETURN_IF_ERROR(CheckGroups(facts));
  return CheckBooks(facts);
}

std::string Range(uint64_t begin, uint64_t end) { return absl::StrCat("[", begin, ", ", end, ")"); }

// {"8":25.1,"9":23.4}
std::string DescribeProducts(const Products& products) {
  std::string json = "{";
  for (size_t i = 0; i < products.mflop.size(); ++i)
    absl::StrAppend(&json, i == 0 ? "" : ",", "\"", products.ratio_min + i, "\":", products.mflop[i]);
  return json + "}";
}

}  // namespace

StatusOr<Fingerprint> FingerprintOf(Bytes own_bytes) {
  Sha256 sha;
  sha.Update(own_bytes);
  KVT_ASSIGN_OR_RETURN(const Sha256Digest digest, sha.Finish());
  Fingerprint fingerprint;
  std::memcpy(fingerprint.data(), digest.data(), fingerprint.size());
  return fingerprint;
}

StatusOr<std::shared_ptr<const Profile>> Profile::Parse(Bytes bytes) {
  std::shared_ptr<Profile> profile(new Profile);
  KVT_ASSIGN_OR_RETURN(profile->own_size_, CheckProfilePrefix(bytes));
  // Room to begin at a multiple of 64, as the bases want.
  profile->bytes_owned_.resize(bytes.size() + kProfileAlignment);
  auto* begin = reinterpret_cast<uint8_t*>(profile->bytes_owned_.data());
  begin += (kProfileAlignment - reinterpret_cast<uintptr_t>(begin) % kProfileAlignment) % kProfileAlignment;
  std::memcpy(begin, bytes.data(), bytes.size());
  profile->bytes_ = Bytes(begin, bytes.size());
  KVT_RETURN_IF_ERROR(ReadProfileFacts(profile->own_bytes(), &profile->facts_));
  KVT_RETURN_IF_ERROR(CheckFacts(profile->facts_));
  for (size_t i = 0; i < profile->facts_.groups.size(); ++i) {
    KVT_RETURN_IF_ERROR(
        UnpackMetrics(profile->facts_, &profile->facts_.groups[i], absl::StrCat("group ", i)));
  }
  if (profile->own_size_ < bytes.size()) {
    KVT_ASSIGN_OR_RETURN(profile->rungs_, ReadProfileRungs(bytes.subspan(profile->own_size_)));
  }
  KVT_ASSIGN_OR_RETURN(profile->fingerprint_, FingerprintOf(profile->own_bytes()));
  return std::shared_ptr<const Profile>(std::move(profile));
}

Status Profile::CheckModel(const Model& model) const {
  if (facts_.model != model.fingerprint()) {
    return Error(KVT_ERR_MISMATCH, absl::StrCat("profile: model fingerprint is ", Hex(Bytes(facts_.model)),
                                                ", expected ", Hex(Bytes(model.fingerprint()))));
  }
  bool same = facts_.streams == model.streams() && facts_.element == model.element() &&
              facts_.layer_end <= model.layers() && facts_.head_end <= model.kv_heads();
  for (uint32_t stream = 0; same && stream < facts_.streams; ++stream)
    same = facts_.dims[stream] == model.head_dim(stream);
  return same ? OkStatus()
              : Corrupt("streams, element, layers, heads or dims are not those of the model that it names");
}

std::string DescribeProfile(const Profile& profile) {
  const ProfileFacts& facts = profile.facts();
  std::string json = absl::StrCat(
      "{\"fingerprint\":\"", Hex(Bytes(profile.fingerprint())), "\",\"model\":\"", Hex(Bytes(facts.model)),
      "\",\"bytes\":", profile.bytes().size(), ",\"layers\":\"", Range(facts.layer_begin, facts.layer_end),
      "\",\"heads\":\"", Range(facts.head_begin, facts.head_end), "\",\"element\":\"",
      std::string(ElementName(facts.element)), "\",\"ratio_min\":", facts.ratio_min,
      ",\"metric\":", facts.groups[0].metric.empty() ? "false" : "true",
      ",\"dense\":", facts.dense == nullptr ? "false" : "true", ",\"tokens\":", facts.tokens,
      ",\"documents\":", facts.documents, ",\"groups\":[");
  const BitPlan widest = PlanBits(facts, CodeBudget(facts, facts.ratio_min));
  const int32_t step = facts.dense == nullptr ? 0 : DenseStep(*facts.dense, DenseRatioMin(facts));
  for (size_t i = 0; i < facts.groups.size(); ++i) {
    const ProfileGroup& group = facts.groups[i];
    absl::StrAppend(&json, i == 0 ? "" : ",", "{\"stream\":", group.stream, ",\"layers\":\"",
                    Range(group.layer_begin, group.layer_end), "\",\"width\":", group.width(),
                    ",\"components\":", group.components(), ",\"fixed\":", widest.bits[i].size(),
                    ",\"dense\":", facts.dense == nullptr ? 0 : DenseKept(group, step), "}");
  }
  absl::StrAppend(&json, "],\"mflop\":{\"transform\":", DescribeProducts(FixedProducts(facts)),
                  ",\"dense\":", DescribeProducts(DenseProducts(facts)), "},\"distortion\":[");
  for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits)
    absl::StrAppend(&json, bits == 1 ? "" : ",", facts.books[bits].distortion);
  absl::StrAppend(&json, "],\"processor\":\"", profile.rungs().processor,
                  "\",\"rungs\":", DescribeRungs(profile.rungs()), "}");
  return json;
}

}  // namespace kvt
