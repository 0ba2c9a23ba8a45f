#include <algorithm>

#include "base/options.h"
#include "codec/codec.h"
#include "codec/segment_codec.h"
#include "codec/transform/steps.h"

namespace kvt {
namespace {

// With the largest segment table the header stays below kFrameHeaderBytesMax.
constexpr uint64_t kSelectedTokensMax = 3u << 20;

// Positions become offsets from the first, or nothing when they are consecutive.
Status ReadPositions(const uint64_t* positions, FrameSpec* spec) {
  if (spec->token_count > kSelectedTokensMax) {
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("kvt_frame_spec.token_count is ", spec->token_count,
                                                        ", with positions the most is ", kSelectedTokensMax));
  }
  spec->first_position = positions[0];
  bool gap = false;
  for (uint64_t t = 0; t < spec->token_count; ++t) {
    const auto bad = [&](const absl::AlphaNum& expected) {
      return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("kvt_frame_spec.positions[", t, "] is ",
                                                          positions[t], ", expected ", expected));
    };
    if (t != 0 && positions[t] <= positions[t - 1])
      return bad(absl::StrCat("more than the ", positions[t - 1], " before it"));
    if (positions[t] == UINT64_MAX || positions[t] - positions[0] > UINT32_MAX)
      return bad(absl::StrCat("at most ", UINT32_MAX, " more than the first, and to be one that has a next"));
    gap = gap || positions[t] - positions[0] != t;
    spec->position_offsets.push_back(static_cast<uint32_t>(positions[t] - positions[0]));
  }
  if (!gap) spec->position_offsets.clear();
  return OkStatus();
}

}  // namespace

Status CheckImportance(absl::string_view name, const int8_t* importance, uint64_t count) {
  for (uint64_t t = 0; importance != nullptr && t < count; ++t) {
    if (importance[t] < kImportanceLeast || importance[t] > kImportanceMost) {
      return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, "[", t, "] is ", importance[t], ", expected ",
                                                          kImportanceLeast, " to ", kImportanceMost));
    }
  }
  return OkStatus();
}

StatusOr<FrameSpec> FrameSpec::Check(const View& view, const kvt_frame_spec_t* spec) {
  kvt_frame_spec_t read = {};
  KVT_RETURN_IF_ERROR(ReadStruct(spec, "kvt_frame_spec", &read, FrameSpec::kLeastBytes));
  if (read.reserved != 0) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_frame_spec.reserved is ", read.reserved, ", expected 0"));
  }
  FrameSpec checked;
  checked.layer_begin = read.layer_begin;
  checked.layer_end = read.layer_end;
  if (read.layer_begin == 0 && read.layer_end == 0) {
    checked.layer_begin = view.layer_begin();
    checked.layer_end = view.layer_end();
  }
  if (checked.layer_begin >= checked.layer_end) {
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("kvt_frame_spec: layers [", checked.layer_begin, ", ",
                                                        checked.layer_end, ") are none"));
  }
  if (checked.layer_begin < view.layer_begin() || checked.layer_end > view.layer_end()) {
    return Error(KVT_ERR_OUT_OF_RANGE,
                 absl::StrCat("kvt_frame_spec: layers [", checked.layer_begin, ", ", checked.layer_end,
                              ") go beyond the view's [", view.layer_begin(), ", ", view.layer_end(), ")"));
  }
  checked.token_begin = read.token_begin;
  checked.token_count = read.token_count;
  if (read.token_count == 0)
    return Error(KVT_ERR_INVALID_ARGUMENT, "kvt_frame_spec.token_count is 0: a frame has at least one token");
  if (read.token_count > kFrameTokensMax) {
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("kvt_frame_spec.token_count is ", read.token_count,
                                                        ", the most is ", kFrameTokensMax));
  }
  if (read.token_begin > view.tokens() || read.token_count > view.tokens() - read.token_begin) {
    return Error(KVT_ERR_OUT_OF_RANGE,
                 absl::StrCat("kvt_frame_spec: token_begin ", read.token_begin, " and token_count ",
                              read.token_count, " go beyond the view's ", view.tokens(), " tokens"));
  }
  if (view.first_position() > UINT64_MAX - view.tokens()) {
    return Error(KVT_ERR_OUT_OF_RANGE, absl::StrCat("kvt_view.first_position ", view.first_position(),
                                                    " and ", view.tokens(), " tokens overflow"));
  }
  checked.exempt_first = static_cast<uint32_t>(std::min<uint64_t>(read.exempt_first, read.token_count));
  checked.exempt_last =
      static_cast<uint32_t>(std::min<uint64_t>(read.exempt_last, read.token_count - checked.exempt_first));
  KVT_RETURN_IF_ERROR(CheckImportance("kvt_frame_spec.importance", read.importance, read.token_count));
  checked.importance = read.importance;
  if (read.positions != nullptr) KVT_RETURN_IF_ERROR(ReadPositions(read.positions, &checked));
  checked.key = Key::From(read.key);
  std::memcpy(checked.namespace_digest.data(), read.namespace_digest, checked.namespace_digest.size());
  return checked;
}

}  // namespace kvt
