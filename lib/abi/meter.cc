#include "kvartet/meter.h"

#include "base/boundary.h"
#include "base/options.h"
#include "measure/advice.h"
#include "measure/meter.h"

namespace {

// Calls `use` with the meter of a handle; its Status is the call's.
template <typename Use>
kvt_status_t With(kvt_meter_t handle, Use&& use) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(auto meter, kvt::Lookup<kvt::Meter>(handle));
    return use(*meter);
  });
}

}  // namespace

extern "C" {

KVT_API kvt_status_t kvt_meter_create(kvt_runtime_t runtime, kvt_meter_t* meter) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (meter == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "meter is NULL");
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<kvt::Runtime>(runtime));
    *meter = kvt::NewHandle(std::make_shared<kvt::Meter>(std::move(found)));
    return kvt::OkStatus();
  });
}

KVT_API void kvt_meter_destroy(kvt_meter_t meter) {
  kvt::VoidBoundary([&] { kvt::Take<kvt::Meter>(meter); });
}

KVT_API kvt_status_t kvt_request_begin(kvt_meter_t meter, const char* way, size_t way_len,
                                       uint64_t* request) {
  return With(meter, [&](kvt::Meter& m) -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(const absl::string_view label, kvt::ReadText("way", way, way_len));
    if (request == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "request is NULL");
    KVT_ASSIGN_OR_RETURN(*request, m.Begin(label));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_request_part(kvt_meter_t meter, uint64_t request, int32_t part) {
  return With(meter, [&](kvt::Meter& m) { return m.Part(request, part); });
}

KVT_API kvt_status_t kvt_request_attribute(kvt_meter_t meter, uint64_t request, int32_t from, int32_t to,
                                           uint64_t nanoseconds) {
  return With(meter, [&](kvt::Meter& m) { return m.Attribute(request, from, to, nanoseconds); });
}

KVT_API kvt_status_t kvt_request_first_token(kvt_meter_t meter, uint64_t request) {
  return With(meter, [&](kvt::Meter& m) { return m.FirstToken(request); });
}

KVT_API kvt_status_t kvt_request_count(kvt_meter_t meter, uint64_t request, int32_t counter,
                                       uint64_t amount) {
  return With(meter, [&](kvt::Meter& m) { return m.Count(request, counter, amount); });
}

KVT_API kvt_status_t kvt_request_end(kvt_meter_t meter, uint64_t request) {
  return With(meter, [&](kvt::Meter& m) { return m.End(request); });
}

KVT_API kvt_status_t kvt_meter_json(kvt_meter_t meter, char* buf, size_t cap, size_t* needed) {
  return With(meter, [&](kvt::Meter& m) {
    const std::string text = kvt::MeterJson(m.Sums());
    return kvt::CopyOut(text.data(), text.size(), buf, cap, needed);
  });
}

KVT_API kvt_status_t kvt_meter_advice(kvt_meter_t meter, char* buf, size_t cap, size_t* needed) {
  return With(meter, [&](kvt::Meter& m) {
    const std::string text = kvt::Advise(m.Sums());
    return kvt::CopyOut(text.data(), text.size(), buf, cap, needed);
  });
}

}  // extern "C"
