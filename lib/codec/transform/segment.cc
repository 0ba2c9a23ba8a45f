#include "codec/transform/segment.h"

#include <algorithm>
#include <cmath>

#include "codec/raw.h"
#include "codec/transform/blas.h"
#include "common/book_bits.h"
#include "common/lossy.h"

namespace kvt {
namespace {

// Tokens of a matrix product: enough for its full speed, few enough for the second-level cache.
constexpr size_t kTileTokens = 256;
// One escape for so many codes at most.
constexpr uint64_t kCodesPerEscape = 128;
constexpr float kLeastGain = 0x1p-14f;

}  // namespace

SegmentLayout::SegmentLayout(const GroupPlan& plan, const SegmentShape& shape) {
  const uint64_t layers = plan.group->layer_end - plan.group->layer_begin, coded = shape.coded();
  exempt_layer_bytes = (shape.exempt_first + shape.exempt_last) * shape.raw_row_bytes();
  gains = layers * exempt_layer_bytes;
  codes = gains + coded * sizeof(uint16_t);
  escape_count = codes + (coded * plan.token_bits() + 7) / 8;
  escapes = escape_count + sizeof(uint32_t);
}

uint64_t SegmentLayout::EscapesMax(const GroupPlan& plan, const SegmentShape& shape) {
  return shape.coded() * plan.kept() / kCodesPerEscape + 16;
}

// Leaves 1 / gain of each token in factors_.
void SegmentCoder::MeasureGains(const GroupPlan& group, size_t count, uint8_t* gains) {
  sums_.assign(count, 0.0f);
  factors_.resize(count);
  for (size_t j = 0; j < group.leading(); ++j)
    kernels::AddSquares(values_.data() + j * kTileTokens, count, group.inverse[j], sums_.data());
  for (size_t t = 0; t < count; ++t) {
    const float mean = group.kept() == 0 ? 0.0f : sums_[t] / static_cast<float>(group.leading());
    const uint16_t half = kernels::F32ToF16(std::clamp(std::sqrt(mean), kLeastGain, kernels::kLossyMax));
    kernels::StoreHalf(half, gains, t);
    factors_[t] = 1 / kernels::F16ToF32(half);
  }
}

void SegmentCoder::FindEscapes(const GroupPlan& group, size_t component, uint64_t token, size_t count) {
  const std::vector<float>& levels = plan_.profile().facts().books[group.bits[component]].levels;
  const float* values = values_.data() + component * kTileTokens;
  for (size_t t = 0; t < count; ++t) {
    const float value = values[t] * group.inverse[component] * factors_[t];
    const float error = std::fabs(value - levels[codes_[t]]);
    if (!(error > group.limits[component])) continue;
    const float saved = error * group.group->deviation[component];
    escapes_.push_back({static_cast<uint32_t>(token + t), static_cast<uint16_t>(component),
                        kernels::F32ToF16(kernels::Saturate(value)), saved * saved});
  }
}

void SegmentCoder::QuantizeTile(const GroupPlan& group, uint64_t coded, uint64_t token, size_t count,
                                uint8_t* codes) {
  codes_.resize(kTileTokens);
  for (size_t j = 0; j < group.kept(); ++j) {
    const uint32_t bits = group.bits[j];
    const bool escapes =
        kernels::QuantizeComponent(plan_.book(bits), values_.data() + j * kTileTokens, count,
                                   group.inverse[j], factors_.data(), group.limits[j], codes_.data());
    if (escapes) FindEscapes(group, j, token, count);
    kernels::PackCodes(codes_.data(), count, bits, codes, coded * group.bits_before[j] + token * bits);
  }
}

uint64_t SegmentCoder::WriteEscapes(uint64_t most, uint8_t* out) {
  const auto by_place = [](const Escape& a, const Escape& b) {
    return std::pair(a.token, a.component) < std::pair(b.token, b.component);
  };
  if (escapes_.size() > most) {
    const auto by_worth = [&](const Escape& a, const Escape& b) {
      return a.worth != b.worth ? a.worth > b.worth : by_place(a, b);
    };
    std::nth_element(escapes_.begin(), escapes_.begin() + static_cast<ptrdiff_t>(most), escapes_.end(),
                     by_worth);
    escapes_.resize(most);
  }
  std::sort(escapes_.begin(), escapes_.end(), by_place);
  StoreLe(out, static_cast<uint32_t>(escapes_.size()));
  out += sizeof(uint32_t);
  for (const Escape& escape : escapes_) {
    StoreLe(out, escape.token);
    StoreLe(out + 4, escape.component);
    StoreLe(out + 6, escape.half);
    out += SegmentLayout::kEscapeBytes;
  }
  return escapes_.size() * SegmentLayout::kEscapeBytes;
}

uint64_t SegmentCoder::Encode(size_t index, const SegmentShape& shape, uint8_t* out, uint64_t* nonfinite) {
  const GroupPlan& group = plan_.groups()[index];
  const SegmentLayout layout(group, shape);
  const ProfileGroup& profile = *group.group;
  kernels::HashCopy unused(nullptr);
  uint8_t* exempt = out;
  for (uint32_t layer = profile.layer_begin; layer < profile.layer_end; ++layer) {
    RowWindow& rows = rows_.Select(layer, shape.stream);
    exempt += EncodeRaw(shape, rows, 0, shape.exempt_first, exempt, unused);
    exempt += EncodeRaw(shape, rows, shape.tokens - shape.exempt_last, shape.exempt_last, exempt, unused);
  }
  std::memset(out + layout.codes, 0, layout.escape_count - layout.codes);
  escapes_.clear();
  values_.resize(kTileTokens * group.kept());
  tile_.resize(kTileTokens * profile.width());
  for (uint64_t token = 0; token < shape.coded(); token += kTileTokens) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(kTileTokens, shape.coded() - token));
    rows_.Load(profile, shape, token, count, tile_.data(), nonfinite);
    if (group.kept() != 0) {
      blas::Multiply(group.kept(), count, profile.width(), {group.basis.data(), profile.width()},
                     {tile_.data(), profile.width(), /*transposed=*/true}, values_.data(), kTileTokens);
    }
    MeasureGains(group, count, out + layout.gains + token * sizeof(uint16_t));
    QuantizeTile(group, shape.coded(), token, count, out + layout.codes);
  }
  return layout.escapes + WriteEscapes(SegmentLayout::EscapesMax(group, shape), out + layout.escape_count);
}

Status SegmentCoder::ReadEscapes(const GroupPlan& group, uint64_t coded, Bytes bytes) {
  const auto count = LoadLe<uint32_t>(bytes.data());
  bytes.remove_prefix(sizeof count);
  if (bytes.size() != count * SegmentLayout::kEscapeBytes) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat(count, " escapes in ", bytes.size(), " bytes, which are ",
                                               SegmentLayout::kEscapeBytes, " each"));
  }
  escapes_.clear();
  uint64_t next = 0;
  for (; !bytes.empty(); bytes.remove_prefix(SegmentLayout::kEscapeBytes)) {
    const Escape escape{LoadLe<uint32_t>(bytes.data()), LoadLe<uint16_t>(bytes.data() + 4),
                        LoadLe<uint16_t>(bytes.data() + 6), 0};
    const uint64_t place = uint64_t{escape.token} * 65536 + escape.component;
    if (escape.token >= coded || escape.component >= group.kept() || place < next) {
      return Error(KVT_ERR_CORRUPT, absl::StrCat("escape of token ", escape.token, ", component ",
                                                 escape.component, " is out of order or of none of ", coded,
                                                 " tokens and ", group.kept(), " components"));
    }
    next = place + 1;
    escapes_.push_back(escape);
  }
  return OkStatus();
}

Status SegmentCoder::Decode(size_t index, const SegmentShape& shape, Bytes stored, uint32_t layer_begin,
                            uint32_t layer_end) {
  const GroupPlan& group = plan_.groups()[index];
  const SegmentLayout layout(group, shape);
  const ProfileGroup& profile = *group.group;
  KVT_RETURN_IF_ERROR(ReadEscapes(group, shape.coded(), stored.subspan(layout.escape_count)));
  kernels::HashCopy unused(nullptr);
  for (uint32_t layer = layer_begin; layer < layer_end; ++layer) {
    RowWindow& rows = rows_.Select(layer, shape.stream);
    const uint8_t* exempt = stored.data() + (layer - profile.layer_begin) * layout.exempt_layer_bytes;
    exempt += DecodeRaw(shape, exempt, rows, 0, shape.exempt_first, unused);
    DecodeRaw(shape, exempt, rows, shape.tokens - shape.exempt_last, shape.exempt_last, unused);
  }
  const size_t width = (layer_end - layer_begin) * shape.channels();
  const float* basis = group.basis.data() + (layer_begin - profile.layer_begin) * shape.channels();
  tile_.assign(kTileTokens * width, 0.0f);
  values_.resize(kTileTokens * group.kept());
  factors_.resize(kTileTokens);
  auto escape = escapes_.begin();
  for (uint64_t token = 0; token < shape.coded(); token += kTileTokens) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(kTileTokens, shape.coded() - token));
    const uint8_t* gains = stored.data() + layout.gains + token * sizeof(uint16_t);
    for (size_t t = 0; t < count; ++t) factors_[t] = kernels::LoadScale(gains, t);
    for (size_t j = 0; j < group.kept(); ++j) {
      kernels::DequantizeComponent(plan_.book(group.bits[j]), stored.data() + layout.codes,
                                   shape.coded() * group.bits_before[j] + token * group.bits[j], count,
                                   profile.deviation[j], factors_.data(), values_.data() + j * kTileTokens);
    }
    for (; escape != escapes_.end() && escape->token < token + count; ++escape) {
      const size_t t = escape->token - token, j = escape->component;
      values_[j * kTileTokens + t] =
          kernels::Saturate(kernels::F16ToF32(escape->half)) * profile.deviation[j] * factors_[t];
    }
    if (group.kept() != 0) {
      blas::Multiply(count, width, group.kept(), {values_.data(), kTileTokens, /*transposed=*/true},
                     {basis, profile.width()}, tile_.data(), width);
    } else {
      std::fill(tile_.begin(), tile_.end(), 0.0f);
    }
    rows_.Store(profile, shape, token, count, layer_begin, layer_end, tile_.data());
  }
  return OkStatus();
}

uint64_t FixedMode::StoredBytesMin(size_t group, const SegmentShape& shape) const {
  return SegmentLayout(plan_->groups()[group], shape).escapes;
}

uint64_t FixedMode::StoredBytesMax(size_t group, const SegmentShape& shape) const {
  const GroupPlan& plan = plan_->groups()[group];
  return SegmentLayout(plan, shape).BytesMax(plan, shape);
}

std::unique_ptr<GroupCoder> FixedMode::NewCoder(const CodingJob& job) const {
  return std::make_unique<SegmentCoder>(*plan_, job);
}

}  // namespace kvt
