// Matrices of a GGUF file's weights as f32, whatever type they are stored in. Threads: one at a time. Blocks:
// reads the file.
#ifndef KVARTET_TOOLS_ENGINE_GGUF_WEIGHTS_H_
#define KVARTET_TOOLS_ENGINE_GGUF_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/result.h"

struct ggml_context;
struct gguf_context;

namespace kvt::engine {

class GgufWeights {
 public:
  // Errors: kIo when the file cannot be opened or is not a whole GGUF.
  static Result<GgufWeights> Open(const std::string& path);

  // The matrix of that name, row by row; a product with it has `rows` elements. Errors: kUnsupported when the
  // file has no such matrix of that shape, or one of a type that the engine does not dequantise; kIo.
  Result<std::vector<float>> Matrix(const std::string& name, int64_t rows, int64_t columns) const;

 private:
  struct Free {
    void operator()(gguf_context* gguf) const;
    void operator()(ggml_context* tensors) const;
  };
  GgufWeights() = default;

  std::string path_;
  std::unique_ptr<gguf_context, Free> gguf_;
  std::unique_ptr<ggml_context, Free> tensors_;  // shapes and types, no data
};

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_GGUF_WEIGHTS_H_
