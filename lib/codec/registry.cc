#include "codec/lossy.h"
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

}  // namespace

StatusOr<std::unique_ptr<const SegmentCodec>> MakeSegmentCodec(const SegmentParameters& parameters,
                                                               kvt_status_t bad_value) {
  const absl::string_view name = parameters.name;
  const uint32_t tokens = parameters.group_tokens, channels = parameters.group_channels;
  if (name == "raw" || name == "int8") {
    KVT_RETURN_IF_ERROR(CheckGroup(name, "group_tokens", tokens, 0, 0, bad_value));
    KVT_RETURN_IF_ERROR(CheckGroup(name, "group_channels", channels, 0, 0, bad_value));
    return name == "raw" ? MakeRawCodec() : MakeInt8Codec();
  }
  if (name == "kivi2" || name == "kivi4") {
    KVT_RETURN_IF_ERROR(CheckGroup(name, "group_tokens", tokens, 16, RowWindow::kRowsMax, bad_value));
    KVT_RETURN_IF_ERROR(CheckGroup(name, "group_channels", channels, 8, 8192, bad_value));
    return MakeKiviCodec(name == "kivi2" ? 2 : 4, tokens, channels);
  }
  return Error(KVT_ERR_UNSUPPORTED, absl::StrCat("codec '", name, "' is not one of raw, int8, kivi2, kivi4"));
}

}  // namespace kvt
