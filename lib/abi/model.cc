#include "model/model.h"

#include "base/boundary.h"
#include "base/options.h"
#include "kvartet/model.h"
#include "model/rope.h"
#include "model/view.h"

namespace {

kvt_model_options_t DefaultOptions() {
  kvt_model_options_t options = {};
  options.struct_size = sizeof options;
  options.layout = KVT_LAYOUT_KV;
  options.element = KVT_ELEMENT_F16;
  options.rope_style = KVT_ROPE_NONE;
  options.rope_magnitude = 1;
  return options;
}

kvt_view_t DefaultView() {
  kvt_view_t view = {};
  view.struct_size = sizeof view;
  view.memory = KVT_MEMORY_HOST;
  view.element = KVT_ELEMENT_F16;
  return view;
}

}  // namespace

extern "C" {

KVT_API void kvt_model_options_init(kvt_model_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(DefaultOptions(), options, struct_size); });
}

KVT_API kvt_status_t kvt_model_create(const kvt_model_options_t* options, kvt_model_t* model) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (model == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "model is NULL");
    kvt_model_options_t read = DefaultOptions();
    KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_model_options", &read));
    KVT_ASSIGN_OR_RETURN(auto created, kvt::Model::Create(read));
    *model = kvt::NewHandle(std::move(created));
    return kvt::OkStatus();
  });
}

KVT_API void kvt_model_destroy(kvt_model_t model) {
  kvt::VoidBoundary([&] { kvt::Take<const kvt::Model>(model); });
}

KVT_API kvt_status_t kvt_model_fingerprint(kvt_model_t model, uint8_t fingerprint[KVT_FINGERPRINT_BYTES]) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (fingerprint == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "fingerprint is NULL");
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Model>(model));
    std::memcpy(fingerprint, found->fingerprint().data(), found->fingerprint().size());
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_model_canonical(kvt_model_t model, uint8_t* buf, size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Model>(model));
    return kvt::CopyOut(found->canonical().data(), found->canonical().size(), buf, cap, needed);
  });
}

KVT_API kvt_status_t kvt_model_compare(kvt_model_t left, kvt_model_t right) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found_left, kvt::Lookup<const kvt::Model>(left));
    KVT_ASSIGN_OR_RETURN(auto found_right, kvt::Lookup<const kvt::Model>(right));
    return kvt::Model::Compare(*found_left, *found_right);
  });
}

KVT_API kvt_status_t kvt_shard_init(kvt_model_t model, kvt_shard_t* shard, size_t struct_size) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (shard == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "shard is NULL");
    if (struct_size < sizeof(kvt_shard_t) || struct_size > 4096) {
      return kvt::Error(
          KVT_ERR_INVALID_ARGUMENT,
          absl::StrCat("struct_size is ", struct_size, ", allowed are ", sizeof(kvt_shard_t), " to 4096"));
    }
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Model>(model));
    kvt_shard_t whole = {};
    whole.struct_size = sizeof whole;
    whole.layer_end = found->layers();
    whole.head_end = found->kv_heads();
    whole.block_tokens = 16;
    kvt::InitStruct(whole, shard, struct_size);
    return kvt::OkStatus();
  });
}

KVT_API void kvt_view_init(kvt_view_t* view, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(DefaultView(), view, struct_size); });
}

KVT_API kvt_status_t kvt_model_rope(kvt_model_t model, const kvt_view_t* view, uint64_t token_begin,
                                    uint64_t count, uint8_t undo) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (undo > 1)
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("undo is ", undo, ", allowed are 0 and 1"));
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(const kvt::View checked, kvt::View::Check(*found, view));
    return kvt::TurnRope(*found, checked, token_begin, count, undo == 1);
  });
}

}  // extern "C"
