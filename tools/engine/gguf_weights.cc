#include "engine/gguf_weights.h"

#include <ggml.h>
#include <gguf.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "engine/gguf_facts.h"

namespace kvt::engine {

void GgufWeights::Free::operator()(gguf_context* gguf) const { gguf_free(gguf); }
void GgufWeights::Free::operator()(ggml_context* tensors) const { ggml_free(tensors); }

Result<GgufWeights> GgufWeights::Open(const std::string& path) {
  // It checks that the file is whole.
  const Result<GgufFacts> facts = ReadGgufFacts(path);
  if (!facts.ok()) return facts.error();
  GgufWeights weights;
  weights.path_ = path;
  ggml_context* tensors = nullptr;
  weights.gguf_.reset(gguf_init_from_file(path.c_str(), gguf_init_params{.no_alloc = true, .ctx = &tensors}));
  weights.tensors_.reset(tensors);
  if (weights.gguf_ == nullptr) return Error{ErrorKind::kIo, "'" + path + "' is a broken GGUF file"};
  return weights;
}

Result<std::vector<float>> GgufWeights::Matrix(const std::string& name, int64_t rows, int64_t columns) const {
  const ggml_tensor* tensor = ggml_get_tensor(tensors_.get(), name.c_str());
  const int64_t id = gguf_find_tensor(gguf_.get(), name.c_str());
  if (tensor == nullptr || id < 0)
    return Error{ErrorKind::kUnsupported, "'" + path_ + "' has no tensor " + name};
  if (ggml_n_dims(tensor) > 2 || tensor->ne[0] != columns || tensor->ne[1] != rows) {
    return Error{ErrorKind::kUnsupported, "'" + path_ + "': tensor " + name + " has " +
                                              std::to_string(tensor->ne[1]) + " rows of " +
                                              std::to_string(tensor->ne[0]) + ", expected " +
                                              std::to_string(rows) + " of " + std::to_string(columns)};
  }
  const ggml_type_traits* traits = ggml_get_type_traits(tensor->type);
  if (tensor->type != GGML_TYPE_F32 && traits->to_float == nullptr) {
    return Error{ErrorKind::kUnsupported,
                 "'" + path_ + "': tensor " + name + " is of type " + traits->type_name};
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path_.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return Error{ErrorKind::kIo, "cannot open '" + path_ + "': " + std::strerror(errno)};
  std::vector<uint8_t> stored(ggml_nbytes(tensor));
  const size_t offset = gguf_get_data_offset(gguf_.get()) + gguf_get_tensor_offset(gguf_.get(), id);
  if (fseeko(file.get(), static_cast<off_t>(offset), SEEK_SET) != 0 ||
      std::fread(stored.data(), 1, stored.size(), file.get()) != stored.size())
    return Error{ErrorKind::kIo, "'" + path_ + "' ends inside tensor " + name};
  std::vector<float> floats(static_cast<size_t>(rows * columns));
  if (tensor->type == GGML_TYPE_F32) {
    std::memcpy(floats.data(), stored.data(), stored.size());
  } else {
    traits->to_float(stored.data(), floats.data(), rows * columns);
  }
  return floats;
}

}  // namespace kvt::engine
