#include "kvartet/experimental.h"

#include <algorithm>

#include "base/boundary.h"
#include "base/options.h"
#include "codec/profile.h"
#include "codec/profile_frame.h"
#include "codec/transform/calibrator.h"

namespace {

kvt_calibration_options_t DefaultOptions() {
  kvt_calibration_options_t options = {};
  options.struct_size = sizeof options;
  options.ratio_min = kvt::kRatioMin;
  return options;
}

kvt::Status Null(absl::string_view name) {
  return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL"));
}

}  // namespace

extern "C" {

KVT_API void kvt_calibration_options_init(kvt_calibration_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(DefaultOptions(), options, struct_size); });
}

KVT_API kvt_status_t kvt_calibration_create(kvt_model_t model, const kvt_calibration_options_t* options,
                                            kvt_calibration_t* calibration) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (calibration == nullptr) return Null("calibration");
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Model>(model));
    kvt_calibration_options_t read = DefaultOptions();
    if (options != nullptr) KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_calibration_options", &read));
    if (read.reserved != 0) {
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT,
                        absl::StrCat("kvt_calibration_options.reserved is ", read.reserved, ", expected 0"));
    }
    const kvt::CalibrationOptions given{read.group_layers, read.ratio_min,  read.layer_begin,
                                        read.layer_end,    read.head_begin, read.head_end};
    KVT_ASSIGN_OR_RETURN(auto created, kvt::Calibrator::Create(std::move(found), given));
    *calibration = kvt::NewHandle(std::move(created));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_calibration_restore(kvt_model_t model, const uint8_t* saved, size_t saved_len,
                                             kvt_calibration_t* calibration) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (calibration == nullptr) return Null("calibration");
    if (saved == nullptr) return Null("saved");
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(auto restored,
                         kvt::Calibrator::Restore(std::move(found), kvt::Bytes(saved, saved_len)));
    *calibration = kvt::NewHandle(std::move(restored));
    return kvt::OkStatus();
  });
}

KVT_API void kvt_calibration_destroy(kvt_calibration_t calibration) {
  kvt::VoidBoundary([&] { kvt::Take<kvt::Calibrator>(calibration); });
}

KVT_API kvt_status_t kvt_calibration_add(kvt_calibration_t calibration, const kvt_view_t* view,
                                         uint64_t token_begin, uint64_t token_count,
                                         const int8_t* importance) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<kvt::Calibrator>(calibration));
    KVT_ASSIGN_OR_RETURN(const kvt::View checked, kvt::View::Check(found->model(), view));
    return found->Add(checked, token_begin, token_count, importance);
  });
}

KVT_API kvt_status_t kvt_calibration_set_metric(kvt_calibration_t calibration, uint32_t stream,
                                                uint32_t layer, uint32_t head, const float* matrix,
                                                size_t count) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (matrix == nullptr) return Null("matrix");
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<kvt::Calibrator>(calibration));
    return found->SetMetric(stream, layer, head, {matrix, count});
  });
}

KVT_API kvt_status_t kvt_calibration_set_weight(kvt_calibration_t calibration, uint32_t stream,
                                                uint32_t layer, float weight) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<kvt::Calibrator>(calibration));
    return found->SetWeight(stream, layer, weight);
  });
}

KVT_API kvt_status_t kvt_calibration_progress(kvt_calibration_t calibration, kvt_calibration_info_t* info) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<kvt::Calibrator>(calibration));
    const kvt::CalibrationInfo seen = found->Info();
    kvt_calibration_info_t written = {};
    written.documents = seen.documents;
    written.tokens = seen.tokens;
    written.nonfinite = seen.nonfinite;
    return kvt::WriteStruct(written, "kvt_calibration_info", info);
  });
}

KVT_API kvt_status_t kvt_calibration_save(kvt_calibration_t calibration, uint8_t* buf, size_t cap,
                                          size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<kvt::Calibrator>(calibration));
    const std::string saved = found->Save();
    return kvt::CopyOut(saved.data(), saved.size(), buf, cap, needed);
  });
}

KVT_API kvt_status_t kvt_calibration_finish(kvt_calibration_t calibration, uint8_t* buf, size_t cap,
                                            size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<kvt::Calibrator>(calibration));
    KVT_ASSIGN_OR_RETURN(const std::string profile, found->Finish());
    return kvt::CopyOut(profile.data(), profile.size(), buf, cap, needed);
  });
}

KVT_API kvt_status_t kvt_profile_fingerprint(const uint8_t* profile, size_t profile_len,
                                             uint8_t fingerprint[KVT_FINGERPRINT_BYTES]) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (profile == nullptr) return Null("profile");
    if (fingerprint == nullptr) return Null("fingerprint");
    KVT_ASSIGN_OR_RETURN(const auto parsed, kvt::Profile::Parse(kvt::Bytes(profile, profile_len)));
    std::memcpy(fingerprint, parsed->fingerprint().data(), parsed->fingerprint().size());
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_profile_describe(const uint8_t* profile, size_t profile_len, char* buf, size_t cap,
                                          size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (profile == nullptr) return Null("profile");
    KVT_ASSIGN_OR_RETURN(const auto parsed, kvt::Profile::Parse(kvt::Bytes(profile, profile_len)));
    const std::string json = kvt::DescribeProfile(*parsed);
    return kvt::CopyOut(json.data(), json.size(), buf, cap, needed);
  });
}

KVT_API kvt_status_t kvt_profile_set_rungs(const uint8_t* profile, size_t profile_len,
                                           const kvt_profile_rung_t* rungs, size_t count,
                                           const char* processor, size_t processor_len, uint8_t* buf,
                                           size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (profile == nullptr) return Null("profile");
    if (rungs == nullptr && count != 0) return Null("rungs");
    KVT_ASSIGN_OR_RETURN(const auto parsed, kvt::Profile::Parse(kvt::Bytes(profile, profile_len)));
    std::string written(kvt::AsText(parsed->own_bytes()));
    if (count != 0) {
      KVT_ASSIGN_OR_RETURN(const absl::string_view name,
                           kvt::ReadText("processor", processor, processor_len));
      KVT_ASSIGN_OR_RETURN(const std::string added, kvt::WriteProfileRungs({rungs, count}, name));
      written += added;
    }
    return kvt::CopyOut(written.data(), written.size(), buf, cap, needed);
  });
}

KVT_API kvt_status_t kvt_profile_rungs(const uint8_t* profile, size_t profile_len, kvt_profile_rung_t* rungs,
                                       size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (profile == nullptr) return Null("profile");
    if (rungs == nullptr && cap != 0) {
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("rungs is NULL but cap is ", cap));
    }
    if (rungs == nullptr && needed == nullptr) return Null("rungs and needed");
    KVT_ASSIGN_OR_RETURN(const auto parsed, kvt::Profile::Parse(kvt::Bytes(profile, profile_len)));
    const std::vector<kvt_profile_rung_t>& found = parsed->rungs().rungs;
    if (needed != nullptr) *needed = found.size();
    if (rungs == nullptr) return kvt::OkStatus();
    if (cap < found.size()) {
      return kvt::Error(KVT_ERR_BUFFER_TOO_SMALL,
                        absl::StrCat("cap is ", cap, ", needed are ", found.size(), " rungs"));
    }
    std::copy(found.begin(), found.end(), rungs);
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_profile_key(const uint8_t fingerprint[KVT_FINGERPRINT_BYTES],
                                     uint8_t key[KVT_KEY_BYTES]) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (fingerprint == nullptr) return Null("fingerprint");
    if (key == nullptr) return Null("key");
    kvt::Fingerprint given;
    std::memcpy(given.data(), fingerprint, given.size());
    KVT_ASSIGN_OR_RETURN(const kvt::Key made, kvt::ProfileKey(given));
    std::memcpy(key, made.bytes.data(), made.bytes.size());
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_profile_wrap(const uint8_t* profile, size_t profile_len,
                                      const uint8_t* namespace_digest, uint8_t* buf, size_t cap,
                                      size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (profile == nullptr) return Null("profile");
    kvt::NamespaceDigest digest{};
    if (namespace_digest != nullptr) std::memcpy(digest.data(), namespace_digest, digest.size());
    KVT_ASSIGN_OR_RETURN(const std::string frame, kvt::WrapProfile(kvt::Bytes(profile, profile_len), digest));
    return kvt::CopyOut(frame.data(), frame.size(), buf, cap, needed);
  });
}

KVT_API kvt_status_t kvt_profile_unwrap(const uint8_t* frame, size_t frame_len, uint8_t* buf, size_t cap,
                                        size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (frame == nullptr) return Null("frame");
    KVT_ASSIGN_OR_RETURN(const kvt::Bytes profile, kvt::UnwrapProfile(kvt::Bytes(frame, frame_len)));
    return kvt::CopyOut(profile.data(), profile.size(), buf, cap, needed);
  });
}

}  // extern "C"
