#include "base/runtime.h"

#include "base/boundary.h"
#include "base/options.h"
#include "kvartet/runtime.h"

namespace {

kvt_runtime_options_t DefaultOptions() {
  kvt_runtime_options_t options = {};
  options.struct_size = sizeof options;
  options.threads = 2;
  options.log_level = KVT_LOG_WARNING;
  return options;
}

}  // namespace

extern "C" {

KVT_API void kvt_runtime_options_init(kvt_runtime_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(DefaultOptions(), options, struct_size); });
}

KVT_API kvt_status_t kvt_runtime_create(const kvt_runtime_options_t* options, kvt_runtime_t* runtime) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (runtime == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "runtime is NULL");
    kvt_runtime_options_t read = DefaultOptions();
    if (options != nullptr) KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_runtime_options", &read));
    KVT_ASSIGN_OR_RETURN(auto created, kvt::Runtime::Create(read));
    *runtime = kvt::NewHandle(std::move(created));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_runtime_close(kvt_runtime_t runtime, int64_t timeout_ms) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Runtime>(runtime));
    KVT_ASSIGN_OR_RETURN(const kvt::Deadline deadline, kvt::Deadline::FromTimeout(timeout_ms));
    return found->WaitIdle(deadline);
  });
}

KVT_API void kvt_runtime_destroy(kvt_runtime_t runtime) {
  kvt::VoidBoundary([&] { kvt::Take<kvt::Runtime>(runtime); });
}

KVT_API kvt_status_t kvt_runtime_memory_used(kvt_runtime_t runtime, uint64_t* bytes) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (bytes == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "bytes is NULL");
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Runtime>(runtime));
    *bytes = found->memory_used();
    return kvt::OkStatus();
  });
}

}  // extern "C"
