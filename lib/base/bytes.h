// Views of bytes and little-endian reads and writes at unaligned places.
#ifndef KVARTET_LIB_BASE_BYTES_H_
#define KVARTET_LIB_BASE_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace kvt {

using Bytes = absl::Span<const uint8_t>;
using MutableBytes = absl::Span<uint8_t>;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "formats are little-endian and copied as they are");

template <typename T>
T LoadLe(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void StoreLe(void* to, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof value);
}

template <typename T>
void AppendLe(std::string* out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline Bytes AsBytes(absl::string_view text) {
  return Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}
inline absl::string_view AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::string Hex(Bytes bytes) { return absl::BytesToHexString(AsText(bytes)); }

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_BYTES_H_
