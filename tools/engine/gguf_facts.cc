#include "engine/gguf_facts.h"

#include <ggml.h>
#include <gguf.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace kvt::engine {
namespace {

using Gguf = std::unique_ptr<gguf_context, void (*)(gguf_context*)>;
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// The adapter's own getters: gguf's abort when a key has another type than asked for.
std::optional<int64_t> Integer(const gguf_context* gguf, const std::string& key) {
  const int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0) return std::nullopt;
  switch (gguf_get_kv_type(gguf, id)) {
    case GGUF_TYPE_UINT8:
      return gguf_get_val_u8(gguf, id);
    case GGUF_TYPE_INT8:
      return gguf_get_val_i8(gguf, id);
    case GGUF_TYPE_UINT16:
      return gguf_get_val_u16(gguf, id);
    case GGUF_TYPE_INT16:
      return gguf_get_val_i16(gguf, id);
    case GGUF_TYPE_UINT32:
      return gguf_get_val_u32(gguf, id);
    case GGUF_TYPE_INT32:
      return gguf_get_val_i32(gguf, id);
    case GGUF_TYPE_UINT64:
      return static_cast<int64_t>(gguf_get_val_u64(gguf, id));
    case GGUF_TYPE_INT64:
      return gguf_get_val_i64(gguf, id);
    default:
      return std::nullopt;
  }
}

std::optional<double> Real(const gguf_context* gguf, const std::string& key) {
  const int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0) return std::nullopt;
  if (gguf_get_kv_type(gguf, id) == GGUF_TYPE_FLOAT32) return gguf_get_val_f32(gguf, id);
  if (gguf_get_kv_type(gguf, id) == GGUF_TYPE_FLOAT64) return gguf_get_val_f64(gguf, id);
  return std::nullopt;
}

std::optional<std::string> Text(const gguf_context* gguf, const std::string& key) {
  const int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return std::nullopt;
  return gguf_get_val_str(gguf, id);
}

Result<std::vector<double>> FloatTensor(const gguf_context* gguf, int64_t id, std::FILE* file,
                                        const std::string& path) {
  std::vector<float> raw(gguf_get_tensor_size(gguf, id) / sizeof(float));
  const size_t offset = gguf_get_data_offset(gguf) + gguf_get_tensor_offset(gguf, id);
  if (fseeko(file, static_cast<off_t>(offset), SEEK_SET) != 0 ||
      std::fread(raw.data(), sizeof(float), raw.size(), file) != raw.size()) {
    return Error{ErrorKind::kIo, "'" + path + "' ends inside tensor " + gguf_get_tensor_name(gguf, id)};
  }
  return std::vector<double>(raw.begin(), raw.end());
}

}  // namespace

Result<GgufFacts> ReadGgufFacts(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return Error{ErrorKind::kIo, "cannot open '" + path + "': " + std::strerror(errno)};
  char magic[4] = {};
  if (std::fread(magic, 1, sizeof magic, file.get()) != sizeof magic || std::memcmp(magic, "GGUF", 4) != 0) {
    return Error{ErrorKind::kIo, "'" + path + "' is not a GGUF file: it does not begin with 'GGUF'"};
  }
  std::rewind(file.get());
  const Gguf gguf(gguf_init_from_file(path.c_str(), gguf_init_params{.no_alloc = true, .ctx = nullptr}),
                  &gguf_free);
  if (gguf == nullptr)
    return Error{ErrorKind::kIo,
                 "'" + path + "' is a broken GGUF file: its metadata is truncated or damaged"};

  if (fseeko(file.get(), 0, SEEK_END) != 0)
    return Error{ErrorKind::kIo, "cannot seek in '" + path + "': " + std::strerror(errno)};
  const auto size = static_cast<uint64_t>(ftello(file.get()));
  uint64_t needed = gguf_get_data_offset(gguf.get());
  uint64_t elements = 0;
  for (int64_t id = 0; id < gguf_get_n_tensors(gguf.get()); ++id) {
    const uint64_t end = gguf_get_data_offset(gguf.get()) + gguf_get_tensor_offset(gguf.get(), id) +
                         gguf_get_tensor_size(gguf.get(), id);
    if (end > needed) needed = end;
    const ggml_type type = gguf_get_tensor_type(gguf.get(), id);
    elements += gguf_get_tensor_size(gguf.get(), id) / ggml_type_size(type) *
                static_cast<uint64_t>(ggml_blck_size(type));
  }
  if (size < needed) {
    return Error{ErrorKind::kIo, "'" + path + "' is truncated: it has " + std::to_string(size) +
                                     " bytes, its tensors need " + std::to_string(needed)};
  }

  GgufFacts facts;
  const std::optional<std::string> architecture = Text(gguf.get(), "general.architecture");
  if (!architecture) return Error{ErrorKind::kIo, "'" + path + "' has no text under general.architecture"};
  facts.architecture = *architecture;
  facts.elements = elements;
  const std::string prefix = facts.architecture + ".";
  facts.split_count = Integer(gguf.get(), "split.count").value_or(1);
  facts.kv_lora_rank = Integer(gguf.get(), prefix + "attention.kv_lora_rank").value_or(0);
  facts.head_dim_k = Integer(gguf.get(), prefix + "attention.key_length");
  facts.rope_dims = Integer(gguf.get(), prefix + "rope.dimension_count");
  facts.rope_base = Real(gguf.get(), prefix + "rope.freq_base").value_or(10000);
  facts.rope_scaling_factor = Real(gguf.get(), prefix + "rope.scaling.factor")
                                  .value_or(Real(gguf.get(), prefix + "rope.scale_linear").value_or(1));
  facts.rope_scaling = Text(gguf.get(), prefix + "rope.scaling.type")
                           .value_or(facts.rope_scaling_factor == 1 ? "none" : "linear");
  facts.rope_long_factors = gguf_find_tensor(gguf.get(), "rope_factors_long.weight") >= 0;
  const int64_t id = gguf_find_tensor(gguf.get(), "rope_freqs.weight");
  if (id >= 0 && gguf_get_tensor_type(gguf.get(), id) == GGML_TYPE_F32) {
    Result<std::vector<double>> factors = FloatTensor(gguf.get(), id, file.get(), path);
    if (!factors.ok()) return factors.error();
    facts.rope_factors = std::move(*factors);
  }
  return facts;
}

}  // namespace kvt::engine
