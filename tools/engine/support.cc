#include "engine/support.h"

namespace kvt::engine {
namespace {

Error Refuse(const ModelTraits& traits, const std::string& field, const std::string& why) {
  return Error{ErrorKind::kUnsupported,
               "model architecture '" + traits.architecture + "' is not supported: " + field + ": " + why};
}

}  // namespace

Status CheckSupported(const ModelTraits& traits) {
  if (traits.split_count > 1) {
    return Refuse(traits, "split.count = " + std::to_string(traits.split_count),
                  "the weights are spread over several files; merge them into one");
  }
  if (traits.has_encoder) return Refuse(traits, "encoder", "encoder-decoder models keep a second cache");
  if (!traits.has_decoder) return Refuse(traits, "decoder", "the model has none, so it has no KV cache");
  if (traits.diffusion) return Refuse(traits, "diffusion", "the model does not decode token by token");
  if (traits.recurrent)
    return Refuse(traits, "recurrent state", "the state is not rows of K and V and cannot be cut by token");
  if (traits.hybrid)
    return Refuse(traits, "hybrid state", "some layers keep recurrent state, which cannot be cut by token");
  if (traits.sliding_window > 0) {
    return Refuse(traits, "attention.sliding_window = " + std::to_string(traits.sliding_window),
                  "the engine keeps two caches and drops the rows outside of the window");
  }
  if (traits.kv_lora_rank > 0) {
    return Refuse(traits, "attention.kv_lora_rank = " + std::to_string(traits.kv_lora_rank),
                  "the cache holds one latent row instead of K and V");
  }
  if (traits.rope == RopeStyle::kMulti) {
    return Refuse(traits, "rope.dimension_sections",
                  "positions have several parts (M-RoPE), a cached row has one");
  }
  return Done{};
}

}  // namespace kvt::engine
