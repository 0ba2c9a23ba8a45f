// Says in words how two models differ, field by field in the order of the canonical bytes.
#include "absl/strings/str_format.h"
#include "model/model.h"

namespace kvt {
namespace {

Status Differ(absl::string_view field, absl::string_view left, absl::string_view right) {
  return Error(KVT_ERR_MISMATCH, absl::StrCat("models differ in ", field, ": ", left, " and ", right));
}

// Ids in hexadecimal; long ones by their first 8 bytes and their length.
std::string ShowId(const std::string& id) {
  if (id.empty()) return "none";
  if (id.size() <= 16) return Hex(AsBytes(id));
  return absl::StrCat(Hex(AsBytes(id).first(8)), "... (", id.size(), " bytes)");
}

std::string ShowDouble(double value) { return absl::StrFormat("%.17g", value); }

absl::string_view LayoutName(uint32_t layout) { return layout == KVT_LAYOUT_MLA ? "mla" : "kv"; }

absl::string_view StyleName(uint32_t style) {
  if (style == KVT_ROPE_INTERLEAVED) return "interleaved";
  return style == KVT_ROPE_HALF_SPLIT ? "half-split" : "none";
}

Status CompareIds(absl::string_view field, const std::string& left, const std::string& right) {
  if (left == right) return OkStatus();
  const auto differ = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  std::string where;
  // The shortened forms could look the same.
  if (differ.first - left.begin() >= 8)
    where = absl::StrCat(" from byte ", differ.first - left.begin(), " on");
  return Differ(absl::StrCat(field, where), ShowId(left), ShowId(right));
}

Status CompareRopes(const Rope& l, const Rope& r) {
  if (l.style != r.style) return Differ("rope_style", StyleName(l.style), StyleName(r.style));
  if (l.offset != r.offset) return Differ("rope_offset", absl::StrCat(l.offset), absl::StrCat(r.offset));
  if (l.dims != r.dims) return Differ("rope_dims", absl::StrCat(l.dims), absl::StrCat(r.dims));
  if (l.base != r.base) return Differ("rope_base", ShowDouble(l.base), ShowDouble(r.base));
  if (l.factors.size() != r.factors.size())
    return Differ("rope_factor_count", absl::StrCat(l.factors.size()), absl::StrCat(r.factors.size()));
  for (size_t i = 0; i < l.factors.size(); ++i) {
    if (l.factors[i] != r.factors[i])
      return Differ(absl::StrCat("rope_factors[", i, "]"), ShowDouble(l.factors[i]),
                    ShowDouble(r.factors[i]));
  }
  if (l.magnitude != r.magnitude)
    return Differ("rope_magnitude", ShowDouble(l.magnitude), ShowDouble(r.magnitude));
  return OkStatus();
}

}  // namespace

Status Model::Compare(const Model& left, const Model& right) {
  if (left.canonical_ == right.canonical_) return OkStatus();
  if (left.layout_ != right.layout_)
    return Differ("layout", LayoutName(left.layout_), LayoutName(right.layout_));
  KVT_RETURN_IF_ERROR(CompareIds("model_id", left.model_id_, right.model_id_));
  KVT_RETURN_IF_ERROR(CompareIds("adapter", left.adapter_, right.adapter_));
  struct Number {
    absl::string_view name;
    uint32_t left, right;
  };
  for (const Number& field :
       {Number{"layers", left.layers_, right.layers_}, Number{"kv_heads", left.kv_heads_, right.kv_heads_},
        Number{"k_dim", left.k_dim_, right.k_dim_}, Number{"v_dim", left.v_dim_, right.v_dim_}}) {
    if (field.left != field.right)
      return Differ(field.name, absl::StrCat(field.left), absl::StrCat(field.right));
  }
  if (left.element_ != right.element_)
    return Differ("element", ElementName(left.element_), ElementName(right.element_));
  return CompareRopes(left.rope_, right.rope_);
}

}  // namespace kvt
