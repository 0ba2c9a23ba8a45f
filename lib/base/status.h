// Status: absl::Status that carries Kvartet's own code, so that the C boundary can hand it out unchanged.
#ifndef KVARTET_LIB_BASE_STATUS_H_
#define KVARTET_LIB_BASE_STATUS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kvartet/base.h"

namespace kvt {

using absl::OkStatus;
using absl::Status;
using absl::StatusOr;

// An error with a KVT_ERR_* code and a message that names the field and the value.
Status Error(kvt_status_t code, absl::string_view message);

// The KVT code of a status: KVT_OK for ok, KVT_ERR_INTERNAL for a status that carries none.
kvt_status_t CodeOf(const Status& status);

// The same code with "context: " before the message.
Status Annotate(const Status& status, absl::string_view context);

// The error for errno after a failed call on `what` (a path, an address): keeps full disks, permissions and
// taken addresses apart.
Status ErrnoError(int error, absl::string_view call, absl::string_view what);

const char* StatusName(kvt_status_t code);

}  // namespace kvt

#define KVT_RETURN_IF_ERROR(expr)              \
  do {                                         \
    ::kvt::Status kvt_status_ = (expr);        \
    if (!kvt_status_.ok()) return kvt_status_; \
  } while (false)

#define KVT_CONCAT_INNER_(a, b) a##b
#define KVT_CONCAT_(a, b) KVT_CONCAT_INNER_(a, b)
#define KVT_ASSIGN_OR_RETURN(lhs, expr) KVT_ASSIGN_OR_RETURN_(KVT_CONCAT_(kvt_or_, __LINE__), lhs, expr)
#define KVT_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                          \
  if (!tmp.ok()) return tmp.status();         \
  lhs = std::move(tmp).value()

#endif  // KVARTET_LIB_BASE_STATUS_H_
