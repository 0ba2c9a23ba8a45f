// The C boundary: the one place where a Status or an exception becomes a code and a thread-local text.
#ifndef KVARTET_LIB_BASE_BOUNDARY_H_
#define KVARTET_LIB_BASE_BOUNDARY_H_

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/status.h"

namespace kvt {

// Sets the calling thread's error text (or clears it) and returns the code.
kvt_status_t Report(const Status& status) noexcept;

// The calling thread's error text.
absl::string_view LastError() noexcept;

// Runs `body`, which returns a Status; an exception becomes one.
template <typename Body>
auto Caught(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error(KVT_ERR_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return Error(KVT_ERR_INTERNAL, absl::StrCat("unexpected exception: ", e.what()));
  } catch (...) {
    return Error(KVT_ERR_INTERNAL, "unexpected exception of an unknown type");
  }
}

// Runs `body`, which returns a Status, and never lets an exception out.
template <typename Body>
kvt_status_t Boundary(Body&& body) noexcept {
  return Report(Caught(std::forward<Body>(body)));
}

// As Caught, for a body that returns nothing.
template <typename Body>
Status CaughtIn(Body&& body) {
  return Caught([&]() -> Status {
    body();
    return OkStatus();
  });
}

// For void functions (init, destroy): swallows what is thrown.
template <typename Body>
void VoidBoundary(Body&& body) noexcept {
  try {
    body();
  } catch (...) {
  }
}

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_BOUNDARY_H_
