// Which models the adapter takes: one plain attention cache with K and V rows of one size in every layer.
// Threads: pure functions.
#ifndef KVARTET_TOOLS_ENGINE_SUPPORT_H_
#define KVARTET_TOOLS_ENGINE_SUPPORT_H_

#include <cstdint>
#include <string>

#include "engine/result.h"

namespace kvt::engine {

enum class RopeStyle { kNone, kInterleaved, kHalfSplit, kMulti };

// What a model says about itself, before anything is run.
struct ModelTraits {
  std::string architecture;
  int64_t split_count = 1;  // files that the weights are spread over
  bool has_encoder = false;
  bool has_decoder = true;
  bool diffusion = false;
  bool recurrent = false;
  bool hybrid = false;
  int64_t sliding_window = 0;
  int64_t kv_lora_rank = 0;  // MLA: one latent instead of K and V
  RopeStyle rope = RopeStyle::kNone;
};

// An error of kind kUnsupported names the architecture, the field and its value.
Status CheckSupported(const ModelTraits& traits);

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_SUPPORT_H_
