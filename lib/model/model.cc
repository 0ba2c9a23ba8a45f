#include "model/model.h"

#include <algorithm>

#include "base/sha256.h"

namespace kvt {
namespace {

// Larger numbers are mistakes (a struct filled in the wrong order, a byte count) and not models.
constexpr uint32_t kMaxLayers = 1024, kMaxHeads = 1024, kMaxDim = 8192;
constexpr size_t kMaxIdBytes = 64;
constexpr double kMaxRopeBase = 1e30, kMinFactor = 1e-6, kMaxFactor = 1e6, kMinMagnitude = 1e-3,
                 kMaxMagnitude = 1e3;
constexpr absl::string_view kCanonicalMagic("kvartet-model-1", 16);  // with its NUL

Status Bad(absl::string_view field, const absl::AlphaNum& value, absl::string_view wanted) {
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat("kvt_model_options.", field, " is ", value, ", ", wanted));
}

Status CheckRange(absl::string_view field, uint32_t value, uint32_t most) {
  if (value >= 1 && value <= most) return OkStatus();
  return Bad(field, value, absl::StrCat("allowed are 1 to ", most));
}

// False for NaN too.
bool Within(double value, double least, double most) { return value >= least && value <= most; }

Status CheckId(absl::string_view field, const uint8_t* data, size_t size, size_t least) {
  if (size < least || size > kMaxIdBytes)
    return Bad(absl::StrCat(field, "_len"), size, absl::StrCat("allowed are ", least, " to ", kMaxIdBytes));
  if (data == nullptr && size != 0) return Bad(field, "NULL", absl::StrCat("but ", field, "_len is ", size));
  return OkStatus();
}

Status CheckGeometry(const kvt_model_options_t& o) {
  if (o.layout != KVT_LAYOUT_KV && o.layout != KVT_LAYOUT_MLA)
    return Bad("layout", o.layout, "allowed are 1 (KV) and 2 (MLA)");
  KVT_RETURN_IF_ERROR(CheckId("model_id", o.model_id, o.model_id_len, 1));
  KVT_RETURN_IF_ERROR(CheckId("adapter", o.adapter, o.adapter_len, 0));
  KVT_RETURN_IF_ERROR(CheckRange("layers", o.layers, kMaxLayers));
  KVT_RETURN_IF_ERROR(CheckRange("kv_heads", o.kv_heads, kMaxHeads));
  KVT_RETURN_IF_ERROR(CheckRange("k_dim", o.k_dim, kMaxDim));
  if (o.layout == KVT_LAYOUT_MLA) {
    if (o.kv_heads != 1) return Bad("kv_heads", o.kv_heads, "an MLA model has 1");
    if (o.v_dim != 0) return Bad("v_dim", o.v_dim, "an MLA model has 0: V is computed from the latent");
  } else {
    KVT_RETURN_IF_ERROR(CheckRange("v_dim", o.v_dim, kMaxDim));
  }
  if (ElementBytes(o.element) == 0)
    return Bad("element", o.element, "allowed are 1 (f32), 2 (f16), 3 (bf16), 4 (fp8_e4m3) and 5 (fp8_e5m2)");
  return OkStatus();
}

Status CheckRope(const kvt_model_options_t& o) {
  if (o.rope_style == KVT_ROPE_NONE) {
    constexpr absl::string_view kUnset = "but rope_style is 0 (none)";
    if (o.rope_offset != 0) return Bad("rope_offset", o.rope_offset, kUnset);
    if (o.rope_dims != 0) return Bad("rope_dims", o.rope_dims, kUnset);
    if (o.rope_base != 0) return Bad("rope_base", o.rope_base, kUnset);
    if (o.rope_factor_count != 0) return Bad("rope_factor_count", o.rope_factor_count, kUnset);
    if (o.rope_magnitude != 1) return Bad("rope_magnitude", o.rope_magnitude, "without a rope_style it is 1");
    return OkStatus();
  }
  if (o.rope_style != KVT_ROPE_INTERLEAVED && o.rope_style != KVT_ROPE_HALF_SPLIT)
    return Bad("rope_style", o.rope_style, "allowed are 0 (none), 1 (interleaved) and 2 (half-split)");
  if (o.rope_dims == 0 || o.rope_dims % 2 != 0)
    return Bad("rope_dims", o.rope_dims, "it must be even, not 0");
  if (uint64_t{o.rope_offset} + o.rope_dims > o.k_dim)
    return Bad("rope_dims", o.rope_dims,
               absl::StrCat("with rope_offset ", o.rope_offset, " that is beyond k_dim ", o.k_dim));
  if (!(o.rope_base > 1) || !(o.rope_base <= kMaxRopeBase))
    return Bad("rope_base", o.rope_base, absl::StrCat("allowed are values above 1 and up to ", kMaxRopeBase));
  if (o.rope_factor_count != 0 && o.rope_factor_count != o.rope_dims / 2)
    return Bad("rope_factor_count", o.rope_factor_count,
               absl::StrCat("allowed are 0 and rope_dims / 2 = ", o.rope_dims / 2));
  if (o.rope_factor_count != 0 && o.rope_factors == nullptr)
    return Bad("rope_factors", "NULL", absl::StrCat("but rope_factor_count is ", o.rope_factor_count));
  for (size_t i = 0; i < o.rope_factor_count; ++i) {
    if (!Within(o.rope_factors[i], kMinFactor, kMaxFactor))
      return Bad(absl::StrCat("rope_factors[", i, "]"), o.rope_factors[i],
                 absl::StrCat("allowed are ", kMinFactor, " to ", kMaxFactor));
  }
  if (!Within(o.rope_magnitude, kMinMagnitude, kMaxMagnitude))
    return Bad("rope_magnitude", o.rope_magnitude,
               absl::StrCat("allowed are ", kMinMagnitude, " to ", kMaxMagnitude));
  return OkStatus();
}

void AppendSized(std::string* out, absl::string_view bytes) {
  AppendLe<uint32_t>(out, static_cast<uint32_t>(bytes.size()));
  absl::StrAppend(out, bytes);
}

std::string CopyId(const uint8_t* data, size_t size) {
  return size == 0 ? std::string() : std::string(AsText(Bytes(data, size)));
}

}  // namespace

size_t ElementBytes(uint32_t element) {
  switch (element) {
    case KVT_ELEMENT_F32:
      return 4;
    case KVT_ELEMENT_F16:
    case KVT_ELEMENT_BF16:
      return 2;
    case KVT_ELEMENT_FP8_E4M3:
    case KVT_ELEMENT_FP8_E5M2:
      return 1;
    default:
      return 0;
  }
}

absl::string_view ElementName(uint32_t element) {
  switch (element) {
    case KVT_ELEMENT_F32:
      return "f32";
    case KVT_ELEMENT_F16:
      return "f16";
    case KVT_ELEMENT_BF16:
      return "bf16";
    case KVT_ELEMENT_FP8_E4M3:
      return "fp8_e4m3";
    case KVT_ELEMENT_FP8_E5M2:
      return "fp8_e5m2";
    default:
      return "unknown";
  }
}

StatusOr<std::shared_ptr<const Model>> Model::Create(const kvt_model_options_t& options) {
  KVT_RETURN_IF_ERROR(CheckGeometry(options));
  KVT_RETURN_IF_ERROR(CheckRope(options));

  std::shared_ptr<Model> model(new Model());
  model->layout_ = options.layout;
  model->model_id_ = CopyId(options.model_id, options.model_id_len);
  model->adapter_ = CopyId(options.adapter, options.adapter_len);
  model->layers_ = options.layers;
  model->kv_heads_ = options.kv_heads;
  model->k_dim_ = options.k_dim;
  model->v_dim_ = options.v_dim;
  model->element_ = options.element;
  Rope& rope = model->rope_;
  rope.style = options.rope_style;
  rope.offset = options.rope_offset;
  rope.dims = options.rope_dims;
  rope.base = options.rope_base;
  rope.magnitude = options.rope_magnitude;
  // Factors that are all 1 scale nothing: the same model as one without.
  const absl::Span<const double> factors(options.rope_factors, options.rope_factor_count);
  if (!std::all_of(factors.begin(), factors.end(), [](double factor) { return factor == 1; }))
    rope.factors.assign(factors.begin(), factors.end());

  std::string& out = model->canonical_;
  absl::StrAppend(&out, kCanonicalMagic);
  AppendLe<uint32_t>(&out, model->layout_);
  AppendSized(&out, model->model_id_);
  AppendSized(&out, model->adapter_);
  for (const uint32_t field : {model->layers_, model->kv_heads_, model->k_dim_, model->v_dim_,
                               model->element_, rope.style, rope.offset, rope.dims}) {
    AppendLe<uint32_t>(&out, field);
  }
  AppendLe<double>(&out, rope.base);
  AppendLe<uint32_t>(&out, static_cast<uint32_t>(rope.factors.size()));
  for (const double factor : rope.factors) AppendLe<double>(&out, factor);
  AppendLe<double>(&out, rope.magnitude);

  Sha256 sha;
  sha.Update(AsBytes(out));
  KVT_ASSIGN_OR_RETURN(const Sha256Digest digest, sha.Finish());
  std::copy_n(digest.begin(), model->fingerprint_.size(), model->fingerprint_.begin());
  return std::shared_ptr<const Model>(std::move(model));
}

}  // namespace kvt
