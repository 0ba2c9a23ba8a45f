// Reading and writing the structures of the C ABI, whose first field is struct_size.
//
// A caller built against an older header passes a shorter structure: what it lacks keeps its default. A
// caller built against a newer one passes a longer structure: accepted while what this library does not know
// is zero.
#ifndef KVARTET_LIB_BASE_OPTIONS_H_
#define KVARTET_LIB_BASE_OPTIONS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/status.h"

namespace kvt {

// Copies `in` over the defaults in `*out`. `min_size` is the size that the structure had in its first
// release.
template <typename T>
Status ReadStruct(const T* in, absl::string_view name, T* out, size_t min_size = sizeof(T)) {
  if (in == nullptr) return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL"));
  const size_t size = in->struct_size;
  if (size < min_size) {
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, ".struct_size is ", size, ", the least is ",
                                                        min_size, "; call its init function"));
  }
  if (size > 4096)
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat(name, ".struct_size is ", size, ", the most is 4096"));
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat(name, " sets a field at offset ", i, " that this version (", sizeof(T),
                                " bytes) does not know"));
    }
  }
  std::memcpy(static_cast<void*>(out), in, std::min(size, sizeof(T)));
  out->struct_size = sizeof(T);
  return OkStatus();
}

// Copies `value` to `*out` as far as out->struct_size says; the rest of a longer structure is zeroed.
template <typename T>
Status WriteStruct(const T& value, absl::string_view name, T* out, size_t min_size = sizeof(T)) {
  if (out == nullptr) return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL"));
  const uint32_t size = out->struct_size;
  if (size < min_size || size > 4096) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat(name, ".struct_size is ", size, ", expected ", sizeof(T)));
  }
  std::memcpy(static_cast<void*>(out), &value, std::min<size_t>(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(reinterpret_cast<unsigned char*>(out) + sizeof(T), 0, size - sizeof(T));
  out->struct_size = size;
  return OkStatus();
}

// The body of every kvt_*_init(): defaults as far as struct_size reaches.
template <typename T>
void InitStruct(const T& defaults, T* out, size_t struct_size, size_t min_size = sizeof(T)) {
  if (out == nullptr || struct_size < min_size) return;
  std::memset(static_cast<void*>(out), 0, struct_size);
  std::memcpy(static_cast<void*>(out), &defaults, std::min(struct_size, sizeof(T)));
  out->struct_size = static_cast<uint32_t>(struct_size);
}

// Text of the caller's. A string_view of a length that no object has aborts, so that is looked at first.
inline StatusOr<absl::string_view> ReadText(absl::string_view name, const char* data, size_t size) {
  if (data == nullptr) return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL"));
  if (size > size_t{PTRDIFF_MAX})
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat(name, "_len is ", size, ", the most is ", PTRDIFF_MAX));
  return absl::string_view(data, size);
}

// The copy-out protocol: buffer, capacity, needed.
inline Status CopyOut(const void* data, size_t size, void* buf, size_t cap, size_t* needed) {
  if (buf == nullptr && cap != 0)
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("buf is NULL but cap is ", cap));
  if (buf == nullptr && needed == nullptr)
    return Error(KVT_ERR_INVALID_ARGUMENT, "buf and needed are both NULL");
  if (needed != nullptr) *needed = size;
  if (buf == nullptr) return OkStatus();
  if (cap < size)
    return Error(KVT_ERR_BUFFER_TOO_SMALL, absl::StrCat("cap is ", cap, ", needed are ", size, " bytes"));
  if (size != 0) std::memcpy(buf, data, size);
  return OkStatus();
}

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_OPTIONS_H_
