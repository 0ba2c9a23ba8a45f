// What rungs cost, measured on one host and kept behind a profile's own bytes: docs/transform.md describes
// them.
//
// Stateless and thread-safe. Reading is safe on hostile bytes.
#ifndef KVARTET_LIB_CODEC_PROFILE_RUNGS_H_
#define KVARTET_LIB_CODEC_PROFILE_RUNGS_H_

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "kvartet/experimental.h"

namespace kvt {

struct ProfileRungs {
  std::string processor;  // that they were measured on
  std::vector<kvt_profile_rung_t> rungs;
};

// Of at least one rung. KVT_ERR_INVALID_ARGUMENT that names the field.
StatusOr<std::string> WriteProfileRungs(absl::Span<const kvt_profile_rung_t> rungs,
                                        absl::string_view processor);

// KVT_ERR_CORRUPT; KVT_ERR_VERSION.
StatusOr<ProfileRungs> ReadProfileRungs(Bytes bytes);

// As an array in JSON.
std::string DescribeRungs(const ProfileRungs& rungs);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_PROFILE_RUNGS_H_
