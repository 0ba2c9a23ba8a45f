#include "codec/entropy/deflate.h"

#include <zlib.h>

namespace kvt {
namespace {

constexpr int kLevel = 6;

}  // namespace

std::vector<uint8_t> Deflate(Bytes bytes) {
  if (bytes.empty() || bytes.size() > UINT32_MAX) return {};
  // Too little room is a result that is not shorter.
  std::vector<uint8_t> deflated(bytes.size() - 1);
  uLongf length = deflated.size();
  if (compress2(deflated.data(), &length, bytes.data(), bytes.size(), kLevel) != Z_OK) return {};
  deflated.resize(length);
  return deflated;
}

Status Inflate(Bytes deflated, MutableBytes out) {
  uLongf length = out.size();
  uLong used = deflated.size();
  const int result = uncompress2(out.data(), &length, deflated.data(), &used);
  if (result == Z_MEM_ERROR) return Error(KVT_ERR_OUT_OF_MEMORY, "deflate: no memory for its window");
  if (result != Z_OK || length != out.size() || used != deflated.size()) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat("deflate: ", used, " of ", deflated.size(), " bytes gave ",
                                               length, " of ", out.size(), ", zlib's result is ", result));
  }
  return OkStatus();
}

}  // namespace kvt
