// What a GGUF file says in its metadata, read without loading the weights. gguf.h is called in this file's
// .cc and gguf_weights.cc, and nowhere else. Threads: any. Blocks: reads the head of the file.
#ifndef KVARTET_TOOLS_ENGINE_GGUF_FACTS_H_
#define KVARTET_TOOLS_ENGINE_GGUF_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/result.h"

namespace kvt::engine {

struct GgufFacts {
  std::string architecture;
  int64_t split_count = 1;
  int64_t kv_lora_rank = 0;
  uint64_t elements = 0;              // of all tensors
  std::optional<int64_t> head_dim_k;  // attention.key_length
  std::optional<int64_t> rope_dims;
  double rope_base = 10000;
  std::string rope_scaling = "none";
  double rope_scaling_factor = 1;
  std::vector<double> rope_factors;  // tensor rope_freqs.weight; empty when there is none
  bool rope_long_factors = false;    // tensors rope_factors_long and _short
};

// Errors: kIo when the file cannot be opened or is not a whole GGUF (the message says which).
Result<GgufFacts> ReadGgufFacts(const std::string& path);

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_GGUF_FACTS_H_
