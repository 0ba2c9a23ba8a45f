// What a fallible call of the adapter returns: a value or an error with a message that names the field and
// the value. Invariant: exactly one of the two is present. Threads: as for any value type.
#ifndef KVARTET_TOOLS_ENGINE_RESULT_H_
#define KVARTET_TOOLS_ENGINE_RESULT_H_

#include <string>
#include <utility>
#include <variant>

namespace kvt::engine {

enum class ErrorKind {
  kInvalid,      // an argument is out of range
  kUnsupported,  // the model keeps KV in a form that the adapter does not take
  kIo,           // a file could not be read
  kCorrupt,      // bytes do not have the layout that they must have
  kNoSpace,      // the context is full
  kCancelled,    // a callback asked to stop
  kEngine,       // llama.cpp failed
};

struct Error {
  ErrorKind kind;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_RESULT_H_
