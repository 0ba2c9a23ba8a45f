#include "base/boundary.h"

#include <cstring>

namespace kvt {
namespace {

// A fixed buffer: reporting out of memory must not allocate.
struct ErrorText {
  char text[KVT_ERROR_TEXT_MAX];
  size_t size = 0;
};
thread_local ErrorText last_error;

}  // namespace

kvt_status_t Report(const Status& status) noexcept {
  if (status.ok()) {
    last_error.size = 0;
    return KVT_OK;
  }
  const absl::string_view message = status.message();
  last_error.size = std::min(message.size(), sizeof last_error.text - 1);
  std::memcpy(last_error.text, message.data(), last_error.size);
  return CodeOf(status);
}

absl::string_view LastError() noexcept { return {last_error.text, last_error.size}; }

}  // namespace kvt
