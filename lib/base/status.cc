#include "base/status.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace kvt {
namespace {

constexpr absl::string_view kPayload = "kvartet/status";

absl::StatusCode Canonical(kvt_status_t code) {
  switch (code) {
    case KVT_OK:
      return absl::StatusCode::kOk;
    case KVT_ERR_INVALID_ARGUMENT:
      return absl::StatusCode::kInvalidArgument;
    case KVT_ERR_NOT_FOUND:
      return absl::StatusCode::kNotFound;
    case KVT_ERR_TIMEOUT:
      return absl::StatusCode::kDeadlineExceeded;
    case KVT_ERR_CANCELLED:
      return absl::StatusCode::kCancelled;
    case KVT_ERR_CORRUPT:
      return absl::StatusCode::kDataLoss;
    case KVT_ERR_UNAVAILABLE:
    case KVT_ERR_PEER_DEAD:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kUnknown;
  }
}

}  // namespace

Status Error(kvt_status_t code, absl::string_view message) {
  Status status(Canonical(code), message);
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(code)));
  return status;
}

kvt_status_t CodeOf(const Status& status) {
  if (status.ok()) return KVT_OK;
  std::optional<absl::Cord> payload;
  if (auto found = status.GetPayload(kPayload)) payload = *found;
  int32_t code = 0;
  if (payload && absl::SimpleAtoi(std::string(*payload), &code)) return code;
  return KVT_ERR_INTERNAL;
}

Status Annotate(const Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return Error(CodeOf(status), absl::StrCat(context, ": ", status.message()));
}

Status ErrnoError(int error, absl::string_view call, absl::string_view what) {
  kvt_status_t code = KVT_ERR_IO;
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      code = KVT_ERR_DISK_FULL;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = KVT_ERR_PERMISSION;
      break;
    case EADDRINUSE:
      code = KVT_ERR_ADDRESS_IN_USE;
      break;
    case ENOENT:
      code = KVT_ERR_NOT_FOUND;
      break;
    case ENOMEM:
      code = KVT_ERR_OUT_OF_MEMORY;
      break;
    case EMFILE:
    case ENFILE:
      code = KVT_ERR_LIMIT;
      break;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      code = KVT_ERR_PEER_DEAD;
      break;
    default:
      break;
  }
  char text[128];
  return Error(code, absl::StrCat(call, " ", what, ": ", strerror_r(error, text, sizeof text), " (errno ",
                                  error, ")"));
}

const char* StatusName(kvt_status_t code) {
#define KVT_NAME(x) \
  case x:           \
    return #x;
  switch (code) {
    KVT_NAME(KVT_OK)
    KVT_NAME(KVT_ERR_INTERNAL)
    KVT_NAME(KVT_ERR_INVALID_ARGUMENT)
    KVT_NAME(KVT_ERR_OUT_OF_RANGE)
    KVT_NAME(KVT_ERR_BUFFER_TOO_SMALL)
    KVT_NAME(KVT_ERR_UNSUPPORTED)
    KVT_NAME(KVT_ERR_UNAVAILABLE)
    KVT_NAME(KVT_ERR_NOT_FOUND)
    KVT_NAME(KVT_ERR_ALREADY_EXISTS)
    KVT_NAME(KVT_ERR_STALE_HANDLE)
    KVT_NAME(KVT_ERR_WRONG_HANDLE)
    KVT_NAME(KVT_ERR_BUSY)
    KVT_NAME(KVT_ERR_CLOSED)
    KVT_NAME(KVT_ERR_TIMEOUT)
    KVT_NAME(KVT_ERR_CANCELLED)
    KVT_NAME(KVT_ERR_STALLED)
    KVT_NAME(KVT_ERR_PEER_DEAD)
    KVT_NAME(KVT_ERR_CORRUPT)
    KVT_NAME(KVT_ERR_MISMATCH)
    KVT_NAME(KVT_ERR_PROFILE_MISSING)
    KVT_NAME(KVT_ERR_VERSION)
    KVT_NAME(KVT_ERR_IO)
    KVT_NAME(KVT_ERR_DISK_FULL)
    KVT_NAME(KVT_ERR_LOCKED)
    KVT_NAME(KVT_ERR_PERMISSION)
    KVT_NAME(KVT_ERR_ADDRESS_IN_USE)
    KVT_NAME(KVT_ERR_OUT_OF_MEMORY)
    KVT_NAME(KVT_ERR_LIMIT)
    default:
      return "KVT_STATUS_UNKNOWN";
  }
#undef KVT_NAME
}

}  // namespace kvt
