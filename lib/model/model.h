// Model: identity and geometry of what computed the KV. Immutable after Create, so thread-safe.
#ifndef KVARTET_LIB_MODEL_MODEL_H_
#define KVARTET_LIB_MODEL_MODEL_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/handles.h"
#include "base/status.h"
#include "kvartet/model.h"

namespace kvt {

using Fingerprint = std::array<uint8_t, KVT_FINGERPRINT_BYTES>;

// Bytes of an element of a KVT_ELEMENT_* type; 0 for an unknown one.
size_t ElementBytes(uint32_t element);
absl::string_view ElementName(uint32_t element);

struct Rope {
  uint32_t style = KVT_ROPE_NONE;
  uint32_t offset = 0;
  uint32_t dims = 0;
  double base = 0;
  std::vector<double> factors;  // empty or dims / 2
  double magnitude = 1;
};

class Model {
 public:
  // `options` has been through ReadStruct.
  static StatusOr<std::shared_ptr<const Model>> Create(const kvt_model_options_t& options);

  uint32_t layout() const { return layout_; }
  uint32_t layers() const { return layers_; }
  uint32_t kv_heads() const { return kv_heads_; }
  uint32_t element() const { return element_; }
  // 2 for KV (K, V), 1 for MLA.
  uint32_t streams() const { return layout_ == KVT_LAYOUT_MLA ? 1 : 2; }
  // Elements of one head's row in a stream.
  uint32_t head_dim(uint32_t stream) const { return stream == 0 ? k_dim_ : v_dim_; }
  const Rope& rope() const { return rope_; }

  // Equal bytes, same model. Layout: docs/keys.md.
  const std::string& canonical() const { return canonical_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }

  // OK, or KVT_ERR_MISMATCH that names the first field that differs and both values.
  static Status Compare(const Model& left, const Model& right);

 private:
  Model() = default;
  uint32_t layout_ = KVT_LAYOUT_KV;
  std::string model_id_, adapter_;
  uint32_t layers_ = 0, kv_heads_ = 0, k_dim_ = 0, v_dim_ = 0, element_ = KVT_ELEMENT_F16;
  Rope rope_;
  std::string canonical_;
  Fingerprint fingerprint_{};
};

template <>
struct HandleTraits<const Model> {
  static constexpr HandleType kType = HandleType::kModel;
};

}  // namespace kvt

#endif  // KVARTET_LIB_MODEL_MODEL_H_
