#include "kvartet/library.h"

#include <cstring>

namespace kvt::cli {
namespace {

constexpr char kNamespace[] = "demo";

}  // namespace

void Check(kvt_status_t status, const char* call) {
  if (status == KVT_OK) return;
  char text[KVT_ERROR_TEXT_MAX];
  size_t size = 0;
  kvt_last_error(text, sizeof text, &size);
  throw Failure(std::string(call) + ": " + kvt_status_name(status) + ": " + std::string(text, size), status);
}

Model MakeModel(const engine::Geometry& geometry) {
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.model_id = geometry.weights_sha256.data();
  options.model_id_len = geometry.weights_sha256.size();
  options.layers = static_cast<uint32_t>(geometry.kv.layers);
  options.kv_heads = static_cast<uint32_t>(geometry.kv.kv_heads);
  options.k_dim = static_cast<uint32_t>(geometry.kv.head_dim_k);
  options.v_dim = static_cast<uint32_t>(geometry.kv.head_dim_v);
  options.element = KVT_ELEMENT_F16;
  const engine::RopeFacts& rope = geometry.rope;
  if (rope.style == engine::RopeStyle::kInterleaved || rope.style == engine::RopeStyle::kHalfSplit) {
    options.rope_style =
        rope.style == engine::RopeStyle::kInterleaved ? KVT_ROPE_INTERLEAVED : KVT_ROPE_HALF_SPLIT;
    options.rope_dims = static_cast<uint32_t>(rope.dims);
    options.rope_base = rope.base;
    options.rope_factors = rope.factors.data();
    options.rope_factor_count = rope.factors.size();
  }
  Model model;
  Check(kvt_model_create(&options, model.out()), "kvt_model_create");
  return model;
}

static Codec CreateCodec(const Model& model, const std::string& name, kvt_codec_options_t* options) {
  options->name = name.data();
  options->name_len = name.size();
  Codec codec;
  Check(kvt_codec_create(model.get(), options, codec.out()), "kvt_codec_create");
  return codec;
}

Codec MakeCodec(const Model& model, const std::string& name) {
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  return CreateCodec(model, name, &options);
}

std::string CodecError(const std::string& name) {
  engine::Geometry any;
  any.kv.layers = any.kv.kv_heads = 1;
  any.kv.head_dim_k = any.kv.head_dim_v = 64;
  try {
    MakeCodec(MakeModel(any), name);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

Codec MakeProfileCodec(const Model& model, const std::string& name, std::span<const uint8_t> profile,
                       uint32_t ratio, uint32_t exempt, uint32_t quantiser) {
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  options.profile = profile.data();
  options.profile_len = profile.size();
  options.ratio = ratio;
  options.exempt = exempt;
  options.quantiser = quantiser;
  return CreateCodec(model, name, &options);
}

Codec MakeTransform(const Model& model, std::span<const uint8_t> profile, uint32_t ratio) {
  return MakeProfileCodec(model, "transform", profile, ratio);
}

NamespaceDigest DemoNamespace() {
  NamespaceDigest digest;
  Check(kvt_namespace_digest(reinterpret_cast<const uint8_t*>(kNamespace), sizeof kNamespace - 1, nullptr, 0,
                             digest.data()),
        "kvt_namespace_digest");
  return digest;
}

static std::vector<uint8_t> Keys(const Model& model, std::span<const int32_t> tokens,
                                 std::span<const kvt_key_extra_t> extras) {
  kvt_key_options_t options;
  kvt_key_options_init(&options, sizeof options);
  options.ns = reinterpret_cast<const uint8_t*>(kNamespace);
  options.ns_len = sizeof kNamespace - 1;
  options.extras = extras.data();
  options.extra_count = extras.size();
  size_t needed = 0;
  Check(kvt_keys_compute(model.get(), &options, tokens.data(), tokens.size(), nullptr, 0, &needed),
        "kvt_keys_compute");
  std::vector<uint8_t> keys(needed);
  Check(kvt_keys_compute(model.get(), &options, tokens.data(), tokens.size(), keys.data(), keys.size(),
                         &needed),
        "kvt_keys_compute");
  return keys;
}

std::vector<uint8_t> BlockKeys(const Model& model, std::span<const int32_t> tokens) {
  return Keys(model, tokens, {});
}

KeyBytes SequenceKey(const Model& model, std::span<const int32_t> tokens, const std::string& label) {
  const size_t whole = tokens.size() / KVT_GRAIN_TOKENS * KVT_GRAIN_TOKENS;
  if (whole == 0)
    throw Failure("the prompt has " + std::to_string(tokens.size()) + " tokens, fewer than one block of 16");
  const std::span<const int32_t> tail = tokens.subspan(whole);
  std::string bytes = label;
  bytes.push_back('\0');
  bytes.append(reinterpret_cast<const char*>(tail.data()), tail.size_bytes());
  const kvt_key_extra_t extra = {whole - 1, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  const std::vector<uint8_t> keys = Keys(model, tokens.first(whole), {&extra, 1});
  KeyBytes key;
  std::memcpy(key.data(), keys.data() + keys.size() - key.size(), key.size());
  return key;
}

BlobView::BlobView(const engine::KvBlob& blob) : bases_(blob.Bases()) {
  const engine::KvGeometry& geometry = blob.geometry();
  kvt_view_init(&view_, sizeof view_);
  view_.element = KVT_ELEMENT_F16;
  view_.layer_end = static_cast<uint32_t>(geometry.layers);
  view_.head_end = static_cast<uint32_t>(geometry.kv_heads);
  view_.bases = bases_.data();
  view_.base_count = bases_.size();
  const engine::RowView rows[2] = {blob.K(0), blob.V(0)};
  for (int stream = 0; stream < 2; ++stream) {
    view_.token_stride[stream] = rows[stream].token_stride;
    view_.head_stride[stream] = rows[stream].head_stride;
    view_.element_stride[stream] = rows[stream].element_stride;
  }
  view_.tokens = static_cast<uint64_t>(blob.tokens());
  view_.first_position = static_cast<uint64_t>(blob.pos_begin());
}

}  // namespace kvt::cli
