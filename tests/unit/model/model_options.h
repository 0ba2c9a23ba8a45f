// Model options and views that tests of the model start from.
#ifndef KVARTET_TESTS_UNIT_MODEL_MODEL_OPTIONS_H_
#define KVARTET_TESTS_UNIT_MODEL_MODEL_OPTIONS_H_

#include <memory>

#include "kvartet/model.h"
#include "model/model.h"

namespace kvt {

inline constexpr uint8_t kModelId[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                         16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

// The model of the test vectors in docs/keys.md.
inline kvt_model_options_t KvOptions() {
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.model_id = kModelId;
  options.model_id_len = sizeof kModelId;
  options.layers = 30;
  options.kv_heads = 3;
  options.k_dim = 64;
  options.v_dim = 64;
  options.rope_style = KVT_ROPE_INTERLEAVED;
  options.rope_dims = 64;
  options.rope_base = 100000;
  return options;
}

inline kvt_model_options_t MlaOptions() {
  kvt_model_options_t options = KvOptions();
  options.layout = KVT_LAYOUT_MLA;
  options.kv_heads = 1;
  options.k_dim = 576;
  options.v_dim = 0;
  options.rope_offset = 512;
  return options;
}

inline std::shared_ptr<const Model> MakeModel(const kvt_model_options_t& options) {
  auto model = Model::Create(options);
  return model.ok() ? *model : nullptr;
}

}  // namespace kvt

#endif  // KVARTET_TESTS_UNIT_MODEL_MODEL_OPTIONS_H_
