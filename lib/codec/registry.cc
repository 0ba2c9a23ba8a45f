#include "absl/strings/strip.h"
#include "codec/cachegen/cachegen.h"
#include "codec/lossless/lossless.h"
#include "codec/lossy.h"
#include "codec/nested/nested.h"
#include "codec/raw.h"
#include "codec/segment_codec.h"

namespace kvt {
namespace {

Status CheckGroup(absl::string_view codec, absl::string_view field, uint32_t value, uint32_t least,
                  uint32_t most, kvt_status_t bad_value) {
  if (value >= least && value <= most) return OkStatus();
  return Error(bad_value,
               absl::StrCat("codec ", codec, ": ", field, " is ", value, ", expected ", least, " to ", most));
}

bool IsRotatedWidth(char digit) { return digit >= '2' && digit <= '4'; }

// rotatedK, or rotatedKvV where V's width is another one; null for other names.
std::unique_ptr<const SegmentCodec> MakeRotated(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "rotated")) return nullptr;
  const bool apart = name.size() == 3 && name[1] == 'v' && name[0] != name[2];
  if ((name.size() != 1 && !apart) || !IsRotatedWidth(name.front()) || !IsRotatedWidth(name.back()))
    return nullptr;
  return MakeRotatedCodec(static_cast<uint32_t>(name.front() - '0'),
                          static_cast<uint32_t>(name.back() - '0'));
}

// The codecs that have no groups; null for other names.
std::unique_ptr<const SegmentFormat> MakeUngrouped(absl::string_view name) {
  if (name == "raw") return MakeRawCodec();
  if (name == "lossless") return MakeLosslessCodec();
  if (name == "nested_coarse") return MakeNestedCoarseCodec();
  if (name == "nested_rest") return MakeNestedRestCodec();
  if (name == "cachegen") return MakeCachegenCodec();
  if (name == "int8") return MakeInt8Codec();
  if (name == "fp8") return MakeFp8Codec(/*e5m2=*/false);
  if (name == "fp8_e5m2") return MakeFp8Codec(/*e5m2=*/true);
  return MakeRotated(name);
}

}  // namespace

StatusOr<std::unique_ptr<const SegmentFormat>> MakeSegmentCodec(const SegmentParameters& parameters,
                                                                kvt_status_t bad_value) {
  const absl::string_view name = parameters.name;
  const uint32_t tokens = parameters.group_tokens, channels = parameters.group_channels;
  if (auto codec = MakeUngrouped(name); codec != nullptr) {
    KVT_RETURN_IF_ERROR(CheckGroup(name, "group_tokens", tokens, 0, 0, bad_value));
    KVT_RETURN_IF_ERROR(CheckGroup(name, "group_channels", channels, 0, 0, bad_value));
    return codec;
  }
  if (name == "kivi2" || name == "kivi4" || name == "kivi8") {
    KVT_RETURN_IF_ERROR(CheckGroup(name, "group_tokens", tokens, 16, RowWindow::kRowsMax, bad_value));
    KVT_RETURN_IF_ERROR(CheckGroup(name, "group_channels", channels, 8, 8192, bad_value));
    return MakeKiviCodec(static_cast<uint32_t>(name.back() - '0'), tokens, channels);
  }
  return Error(
      KVT_ERR_UNSUPPORTED,
      absl::StrCat(
          "codec '", name,
          "' is not one of raw, lossless, nested_coarse, nested_rest, cachegen, int8, fp8, fp8_e5m2, kivi2, "
          "kivi4, kivi8, of rotated2, rotated3, rotated4, rotated4v2 and the like, or, with a profile, of "
          "transform, dense, kvtc"));
}

}  // namespace kvt
