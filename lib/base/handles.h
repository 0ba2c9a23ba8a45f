// Generational handles: the ids of the C ABI. The table is the library's only process-wide state; it is
// thread-safe.
//
// An id is type (7 bits) | generation (24 bits) | slot (32 bits), bit 63 is 0. Looking up costs one lock; the
// object stays alive while the returned pointer does, so destroying it elsewhere at the same time is safe.
#ifndef KVARTET_LIB_BASE_HANDLES_H_
#define KVARTET_LIB_BASE_HANDLES_H_

#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/status.h"

namespace kvt {

enum class HandleType : uint8_t {
  kRuntime = 1,
  kModel = 2,
  kCodec = 3,
  kCache = 4,
  kNode = 5,
  kPeer = 6,
  kStream = 7,
  kVerifier = 8,
  kMeter = 9,
  kCalibration = 10,
  kPlanner = 11,
};

// Untyped part; use the templates below.
uint64_t InsertHandle(HandleType type, std::shared_ptr<void> object);
StatusOr<std::shared_ptr<void>> FindHandle(HandleType type, uint64_t id);
// Null when the id is 0, stale or of another type.
std::shared_ptr<void> RemoveHandle(HandleType type, uint64_t id);

// Specialised beside each class that has handles: `template <> struct HandleTraits<Foo> { static constexpr
// HandleType kType = ...; };`
template <typename T>
struct HandleTraits;

template <typename T>
uint64_t NewHandle(std::shared_ptr<T> object) {
  return InsertHandle(HandleTraits<T>::kType,
                      std::const_pointer_cast<std::remove_const_t<T>>(std::move(object)));
}

template <typename T>
StatusOr<std::shared_ptr<T>> Lookup(uint64_t id) {
  KVT_ASSIGN_OR_RETURN(std::shared_ptr<void> object, FindHandle(HandleTraits<T>::kType, id));
  return std::static_pointer_cast<T>(std::move(object));
}

template <typename T>
std::shared_ptr<T> Take(uint64_t id) {
  return std::static_pointer_cast<T>(RemoveHandle(HandleTraits<T>::kType, id));
}

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_HANDLES_H_
