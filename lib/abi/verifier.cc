#include "kvartet/verifier.h"

#include "base/boundary.h"
#include "base/options.h"
#include "verify/fidelity.h"
#include "verify/verifier.h"

namespace {

// Calls `use` with the verifier of a handle; its Status is the call's.
template <typename Use>
kvt_status_t With(kvt_verifier_t handle, Use&& use) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto verifier, kvt::Lookup<kvt::Verifier>(handle));
    return use(*verifier);
  });
}

}  // namespace

extern "C" {

KVT_API void kvt_verifier_options_init(kvt_verifier_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(kvt::DefaultVerifierOptions(), options, struct_size); });
}

KVT_API kvt_status_t kvt_verifier_create(const kvt_verifier_options_t* options, kvt_verifier_t* verifier) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (verifier == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "verifier is NULL");
    kvt_verifier_options_t read = kvt::DefaultVerifierOptions();
    KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_verifier_options", &read));
    KVT_ASSIGN_OR_RETURN(auto created, kvt::Verifier::Create(read));
    *verifier = kvt::NewHandle(std::move(created));
    return kvt::OkStatus();
  });
}

KVT_API void kvt_verifier_destroy(kvt_verifier_t verifier) {
  kvt::VoidBoundary([&] { kvt::Take<kvt::Verifier>(verifier); });
}

KVT_API kvt_status_t kvt_verifier_next(kvt_verifier_t verifier, kvt_action_t* action) {
  return With(verifier, [&](kvt::Verifier& v) { return kvt::WriteStruct(v.Next(), "kvt_action", action); });
}

KVT_API kvt_status_t kvt_verifier_drafted(kvt_verifier_t verifier, const int32_t* tokens, size_t count,
                                          uint64_t microseconds) {
  return With(verifier, [&](kvt::Verifier& v) { return v.Drafted(tokens, count, microseconds); });
}

KVT_API kvt_status_t kvt_verifier_loaded(kvt_verifier_t verifier, kvt_status_t status,
                                         uint64_t microseconds) {
  return With(verifier, [&](kvt::Verifier& v) { return v.Loaded(status, microseconds); });
}

KVT_API kvt_status_t kvt_verifier_verified(kvt_verifier_t verifier, const int32_t* tokens, const float* gaps,
                                           size_t count, uint64_t microseconds) {
  return With(verifier, [&](kvt::Verifier& v) { return v.Verified(tokens, gaps, count, microseconds); });
}

KVT_API kvt_status_t kvt_verifier_rechecked(kvt_verifier_t verifier, int32_t token, uint64_t microseconds) {
  return With(verifier, [&](kvt::Verifier& v) { return v.Rechecked(token, microseconds); });
}

KVT_API kvt_status_t kvt_verifier_rolled_back(kvt_verifier_t verifier) {
  return With(verifier, [&](kvt::Verifier& v) { return v.RolledBack(); });
}

KVT_API kvt_status_t kvt_verifier_committed(kvt_verifier_t verifier) {
  return With(verifier, [&](kvt::Verifier& v) { return v.Committed(); });
}

KVT_API kvt_status_t kvt_verifier_cancel(kvt_verifier_t verifier) {
  return With(verifier, [&](kvt::Verifier& v) { return v.Cancel(); });
}

KVT_API kvt_status_t kvt_verifier_stats(kvt_verifier_t verifier, kvt_verifier_stats_t* stats) {
  return With(verifier,
              [&](kvt::Verifier& v) { return kvt::WriteStruct(v.Stats(), "kvt_verifier_stats", stats); });
}

KVT_API kvt_status_t kvt_fidelity_classify(const float* alone, const float* batched, size_t rows,
                                           size_t vocabulary, const uint32_t* widths, const uint32_t* places,
                                           int32_t* level, float* margin) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (level == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "level is NULL");
    if (margin == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "margin is NULL");
    KVT_ASSIGN_OR_RETURN(const kvt::Fidelity fidelity,
                         kvt::ClassifyFidelity(alone, batched, rows, vocabulary, widths, places));
    *level = fidelity.level;
    *margin = fidelity.margin;
    return kvt::OkStatus();
  });
}

}  // extern "C"
