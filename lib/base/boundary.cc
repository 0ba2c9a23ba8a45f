#include "base/boundary.h"

#include <algorithm>
#include <cstring>

namespace kvt {
namespace {

// A fixed buffer: reporting out of memory must not allocate.
struct ErrorText {
  char text[KVT_ERROR_TEXT_MAX];
  size_t size = 0;
};
thread_local ErrorText last_error;

// Bytes of the UTF-8 character at the front of `text`; 0 when there is none.
size_t CharacterBytes(absl::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond Unicode.
  if ((first == 0xe0 && at(1) < 0xa0) || (first == 0xed && at(1) > 0x9f) || (first == 0xf0 && at(1) < 0x90) ||
      (first == 0xf4 && at(1) > 0x8f)) {
    return 0;
  }
  return size;
}

}  // namespace

kvt_status_t Report(const Status& status) noexcept {
  if (status.ok()) {
    last_error.size = 0;
    return KVT_OK;
  }
  // Always UTF-8: messages repeat what callers passed, and a long one is cut between characters.
  absl::string_view message = status.message();
  last_error.size = 0;
  while (!message.empty()) {
    const size_t bytes = CharacterBytes(message), taken = std::max<size_t>(bytes, 1);
    if (last_error.size + taken > sizeof last_error.text - 1) break;
    std::memcpy(last_error.text + last_error.size, bytes == 0 ? "?" : message.data(), taken);
    last_error.size += taken;
    message.remove_prefix(taken);
  }
  return CodeOf(status);
}

absl::string_view LastError() noexcept { return {last_error.text, last_error.size}; }

}  // namespace kvt
