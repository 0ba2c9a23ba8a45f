#include "codec/raw.h"
#include "codec/segment_codec.h"

namespace kvt {

StatusOr<std::unique_ptr<const SegmentCodec>> MakeSegmentCodec(const SegmentParameters& parameters,
                                                               kvt_status_t bad_value) {
  const absl::string_view name = parameters.name;
  if (name == "raw") {
    if (parameters.group_tokens != 0 || parameters.group_channels != 0)
      return Error(bad_value, absl::StrCat("codec ", name, " has no groups"));
    return MakeRawCodec();
  }
  return Error(KVT_ERR_UNSUPPORTED, absl::StrCat("codec '", name, "' is not one of raw, int8, kivi2, kivi4"));
}

}  // namespace kvt
