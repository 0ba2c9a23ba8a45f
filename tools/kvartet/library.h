// Thin C++ over the public C ABI for the command: owned handles, failures as text, and the view of an
// engine's blob.
//
// The command uses public headers only. Threads: as the handles themselves.
#ifndef KVARTET_TOOLS_KVARTET_LIBRARY_H_
#define KVARTET_TOOLS_KVARTET_LIBRARY_H_

#include <kvartet/experimental.h>
#include <kvartet/kvartet.h>

#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace kvt::cli {

// What ends a command: the message for the user, and the library's status if it came from there.
struct Failure : std::runtime_error {
  explicit Failure(const std::string& message, kvt_status_t status_code = KVT_ERR_INTERNAL)
      : std::runtime_error(message), status(status_code) {}
  kvt_status_t status;
};

// Throws Failure with the call, the status name and the library's text.
void Check(kvt_status_t status, const char* call);

template <class T>
T Take(engine::Result<T> result, const char* what) {
  if (!result.ok()) throw Failure(std::string(what) + ": " + result.error().message);
  return std::move(*result);
}

template <void (*Destroy)(uint64_t)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(uint64_t id) : id_(id) {}
  Owned(Owned&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Owned() { Destroy(id_); }
  uint64_t get() const { return id_; }
  uint64_t* out() { return &id_; }

 private:
  uint64_t id_ = 0;
};

using Runtime = Owned<kvt_runtime_destroy>;
using Model = Owned<kvt_model_destroy>;
using Codec = Owned<kvt_codec_destroy>;
using Cache = Owned<kvt_cache_destroy>;
using Node = Owned<kvt_node_destroy>;
using Peer = Owned<kvt_peer_destroy>;
using Stream = Owned<kvt_stream_destroy>;
using Verifier = Owned<kvt_verifier_destroy>;
using Meter = Owned<kvt_meter_destroy>;
using Calibration = Owned<kvt_calibration_destroy>;

using KeyBytes = std::array<uint8_t, KVT_KEY_BYTES>;
using NamespaceDigest = std::array<uint8_t, KVT_NAMESPACE_DIGEST_BYTES>;

Model MakeModel(const engine::Geometry& geometry);
Codec MakeCodec(const Model& model, const std::string& name);
// Why MakeCodec refuses a name; empty when it does not.
std::string CodecError(const std::string& name);
// A codec with a profile's bytes, which are copied, a ratio, and for dense what becomes of exempt tokens and
// which quantiser.
Codec MakeProfileCodec(const Model& model, const std::string& name, std::span<const uint8_t> profile,
                       uint32_t ratio, uint32_t exempt = 0, uint32_t quantiser = 0);
Codec MakeTransform(const Model& model, std::span<const uint8_t> profile, uint32_t ratio);

// The namespace that the command works in.
NamespaceDigest DemoNamespace();

// Keys of the whole 16-token blocks of `tokens`.
std::vector<uint8_t> BlockKeys(const Model& model, std::span<const int32_t> tokens);

// A key that names all of `tokens`, a ragged end included, and `label` (two streams of one sequence differ by
// it).
KeyBytes SequenceKey(const Model& model, std::span<const int32_t> tokens, const std::string& label);

// A kvt_view_t over a blob; it lives as long as the blob is not moved away.
class BlobView {
 public:
  explicit BlobView(const engine::KvBlob& blob);
  BlobView(const BlobView&) = delete;
  BlobView& operator=(const BlobView&) = delete;
  const kvt_view_t* get() const { return &view_; }

 private:
  std::vector<void*> bases_;
  kvt_view_t view_;
};

// The text that a copy-out function gives.
template <class Call>
std::string CopyText(Call call, const char* name) {
  size_t needed = 0;
  Check(call(nullptr, 0, &needed), name);
  std::string text(needed, '\0');
  Check(call(text.data(), text.size(), &needed), name);
  text.resize(needed);
  return text;
}

// The bytes that a copy-out function gives. `buffer` may be of an earlier call: what is dear to compute is
// then computed once.
template <class Call>
void CopyBytes(Call call, const char* name, std::vector<uint8_t>* buffer) {
  size_t needed = 0;
  kvt_status_t status = KVT_ERR_BUFFER_TOO_SMALL;
  if (buffer->empty()) {
    Check(call(nullptr, 0, &needed), name);
  } else {
    status = call(buffer->data(), buffer->size(), &needed);
  }
  if (status == KVT_ERR_BUFFER_TOO_SMALL) {
    buffer->resize(needed);
    status = call(buffer->data(), buffer->size(), &needed);
  }
  Check(status, name);
  buffer->resize(needed);
}

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_LIBRARY_H_
