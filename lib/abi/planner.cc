#include "kvartet/planner.h"

#include "base/boundary.h"
#include "base/options.h"
#include "plan/planner.h"

extern "C" {

KVT_API void kvt_planner_options_init(kvt_planner_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(kvt::DefaultPlannerOptions(), options, struct_size); });
}

KVT_API void kvt_codec_request_init(kvt_codec_request_t* request, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(kvt::DefaultCodecRequest(), request, struct_size); });
}

KVT_API kvt_status_t kvt_planner_create(const kvt_planner_options_t* options, kvt_planner_t* planner) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (planner == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "planner is NULL");
    kvt_planner_options_t read = kvt::DefaultPlannerOptions();
    KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_planner_options", &read));
    KVT_ASSIGN_OR_RETURN(auto created, kvt::Planner::Create(read));
    *planner = kvt::NewHandle(std::move(created));
    return kvt::OkStatus();
  });
}

KVT_API void kvt_planner_destroy(kvt_planner_t planner) {
  kvt::VoidBoundary([&] { kvt::Take<kvt::Planner>(planner); });
}

KVT_API kvt_status_t kvt_planner_pick_codec(kvt_planner_t planner, const kvt_codec_request_t* request,
                                            kvt_codec_choice_t* choice) {
  return kvt::Boundary([&]() -> kvt::Status {
    kvt_codec_request_t read = kvt::DefaultCodecRequest();
    KVT_RETURN_IF_ERROR(kvt::ReadStruct(request, "kvt_codec_request", &read));
    if (choice == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "kvt_codec_choice is NULL");
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<kvt::Planner>(planner));
    KVT_ASSIGN_OR_RETURN(const kvt_codec_choice_t picked, found->Pick(read));
    return kvt::WriteStruct(picked, "kvt_codec_choice", choice);
  });
}

KVT_API kvt_status_t kvt_planner_observe(kvt_planner_t planner, const kvt_codec_choice_t* choice,
                                         double seconds) {
  return kvt::Boundary([&]() -> kvt::Status {
    kvt_codec_choice_t read = {};
    KVT_RETURN_IF_ERROR(kvt::ReadStruct(choice, "kvt_codec_choice", &read));
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<kvt::Planner>(planner));
    return found->Observe(read, seconds);
  });
}

KVT_API kvt_status_t kvt_planner_crossover(kvt_planner_t planner, uint32_t rung, uint32_t segments,
                                           uint64_t bytes, double* bandwidth) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (bandwidth == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "bandwidth is NULL");
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<kvt::Planner>(planner));
    KVT_ASSIGN_OR_RETURN(*bandwidth, found->Crossover(rung, segments, bytes));
    return kvt::OkStatus();
  });
}

}  // extern "C"
