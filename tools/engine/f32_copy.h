// A copy of a model's file with its weights as f32.
//
// A model with quantised weights rounds its activations too, in every product: a change of KV in the last
// bits then moves logits by half a unit, which hides what a codec does. The copy has the same weights, and
// responds evenly. Its digest is another, so its KV and its profiles are another model's. Threads: any.
#ifndef KVARTET_TOOLS_ENGINE_F32_COPY_H_
#define KVARTET_TOOLS_ENGINE_F32_COPY_H_

#include <cstdint>
#include <string>

#include "engine/result.h"

namespace kvt::engine {

// The bytes that the weights of a copy of the GGUF file take.
Result<uint64_t> F32WeightBytes(const std::string& path);

// Writes the copy under another name beside `copy`, then renames it: `copy` is whole or not there. Errors: as
// Engine::Open for the file; kNoSpace when the disk has no room for it; kIo when it cannot be written.
// Blocks: yes, for seconds a gigabyte.
Status WriteF32Copy(const std::string& path, const std::string& copy);

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_F32_COPY_H_
