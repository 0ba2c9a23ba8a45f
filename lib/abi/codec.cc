#include "kvartet/codec.h"

#include "base/boundary.h"
#include "base/options.h"
#include "codec/codec.h"
#include "codec/describe.h"

namespace {

kvt_codec_options_t DefaultOptions() {
  kvt_codec_options_t options = {};
  options.struct_size = sizeof options;
  options.group_tokens = 32;
  options.group_channels = 32;
  return options;
}

// What the options were in their first draft.
constexpr size_t kLeastOptions = offsetof(kvt_codec_options_t, profile);

kvt::Status Null(absl::string_view name) {
  return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL"));
}

// The three arguments that bound, encode and decode begin with, after all their checks.
struct Arguments {
  std::shared_ptr<const kvt::Codec> codec;
  kvt::View view;
  kvt::FrameSpec spec;

  static kvt::StatusOr<Arguments> Check(kvt_codec_t codec, const kvt_view_t* view,
                                        const kvt_frame_spec_t* spec) {
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Codec>(codec));
    KVT_ASSIGN_OR_RETURN(kvt::View checked, kvt::View::Check(found->model(), view));
    KVT_ASSIGN_OR_RETURN(const kvt::FrameSpec checked_spec, kvt::FrameSpec::Check(checked, spec));
    return Arguments{std::move(found), std::move(checked), checked_spec};
  }
};

// Refuses a report that could not be written before any work is done.
kvt::Status CheckReport(const kvt_codec_report_t* report) {
  if (report == nullptr) return kvt::OkStatus();
  if (report->struct_size >= sizeof *report && report->struct_size <= 4096) return kvt::OkStatus();
  return kvt::Error(
      KVT_ERR_INVALID_ARGUMENT,
      absl::StrCat("kvt_codec_report.struct_size is ", report->struct_size, ", expected ", sizeof *report));
}

kvt::Status WriteReport(const kvt::CodecReport& from, kvt_codec_report_t* report) {
  if (report == nullptr) return kvt::OkStatus();
  kvt_codec_report_t written = {};
  written.segments = from.segments;
  written.frame_bytes = from.frame_bytes;
  written.decoded_bytes = from.decoded_bytes;
  written.nonfinite = from.nonfinite;
  written.checksums = from.checksums;
  return kvt::WriteStruct(written, "kvt_codec_report", report);
}

}  // namespace

extern "C" {

KVT_API void kvt_codec_options_init(kvt_codec_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(DefaultOptions(), options, struct_size, kLeastOptions); });
}

KVT_API kvt_status_t kvt_codec_create(kvt_model_t model, const kvt_codec_options_t* options,
                                      kvt_codec_t* codec) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (codec == nullptr) return Null("codec");
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Model>(model));
    kvt_codec_options_t read = DefaultOptions();
    if (options != nullptr)
      KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_codec_options", &read, kLeastOptions));
    KVT_ASSIGN_OR_RETURN(auto created, kvt::Codec::Create(std::move(found), read));
    *codec = kvt::NewHandle(std::move(created));
    return kvt::OkStatus();
  });
}

KVT_API void kvt_codec_destroy(kvt_codec_t codec) {
  kvt::VoidBoundary([&] { kvt::Take<const kvt::Codec>(codec); });
}

KVT_API void kvt_frame_spec_init(kvt_frame_spec_t* spec, size_t struct_size) {
  kvt::VoidBoundary(
      [&] { kvt::InitStruct(kvt_frame_spec_t{}, spec, struct_size, kvt::FrameSpec::kLeastBytes); });
}

KVT_API kvt_status_t kvt_codec_bound(kvt_codec_t codec, const kvt_view_t* view, const kvt_frame_spec_t* spec,
                                     uint64_t* bytes) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (bytes == nullptr) return Null("bytes");
    KVT_ASSIGN_OR_RETURN(const Arguments arguments, Arguments::Check(codec, view, spec));
    KVT_ASSIGN_OR_RETURN(*bytes, arguments.codec->Bound(arguments.view, arguments.spec));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_codec_encode(kvt_codec_t codec, const kvt_view_t* view, const kvt_frame_spec_t* spec,
                                      uint8_t* buf, size_t cap, size_t* needed, kvt_codec_report_t* report) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (buf == nullptr && cap != 0) {
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("buf is NULL but cap is ", cap));
    }
    if (buf == nullptr && needed == nullptr) return Null("buf and needed");
    KVT_RETURN_IF_ERROR(CheckReport(report));
    KVT_ASSIGN_OR_RETURN(const Arguments arguments, Arguments::Check(codec, view, spec));
    if (buf == nullptr) {
      KVT_ASSIGN_OR_RETURN(*needed, arguments.codec->Bound(arguments.view, arguments.spec));
      return kvt::OkStatus();
    }
    auto encoded = arguments.codec->Encode(arguments.view, arguments.spec, kvt::MutableBytes(buf, cap));
    if (kvt::CodeOf(encoded.status()) == KVT_ERR_BUFFER_TOO_SMALL && needed != nullptr) {
      KVT_ASSIGN_OR_RETURN(*needed, arguments.codec->Bound(arguments.view, arguments.spec));
    }
    KVT_ASSIGN_OR_RETURN(const kvt::CodecReport done, std::move(encoded));
    if (needed != nullptr) *needed = done.frame_bytes;
    return WriteReport(done, report);
  });
}

KVT_API kvt_status_t kvt_codec_decode(kvt_codec_t codec, const uint8_t* frame, size_t frame_len,
                                      const kvt_frame_spec_t* spec, const kvt_view_t* view,
                                      kvt_codec_report_t* report) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (frame == nullptr) return Null("frame");
    KVT_RETURN_IF_ERROR(CheckReport(report));
    KVT_ASSIGN_OR_RETURN(const Arguments arguments, Arguments::Check(codec, view, spec));
    KVT_ASSIGN_OR_RETURN(
        const kvt::CodecReport done,
        arguments.codec->Decode(kvt::Bytes(frame, frame_len), arguments.spec, arguments.view));
    return WriteReport(done, report);
  });
}

KVT_API kvt_status_t kvt_frame_verify(const uint8_t* frame, size_t frame_len) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (frame == nullptr) return Null("frame");
    return kvt::VerifyFrame(kvt::Bytes(frame, frame_len), nullptr).status();
  });
}

KVT_API kvt_status_t kvt_frame_positions(const uint8_t* frame, size_t frame_len, uint64_t* positions,
                                         size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (frame == nullptr) return Null("frame");
    if (positions == nullptr && cap != 0) {
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("positions is NULL but cap is ", cap));
    }
    if (positions == nullptr && needed == nullptr) return Null("positions and needed");
    KVT_ASSIGN_OR_RETURN(const kvt::FrameHeader header, kvt::ParseFrame(kvt::Bytes(frame, frame_len)));
    if (needed != nullptr) *needed = header.tokens;
    if (positions == nullptr) return kvt::OkStatus();
    if (cap < header.tokens) {
      return kvt::Error(KVT_ERR_BUFFER_TOO_SMALL,
                        absl::StrCat("cap is ", cap, ", needed are ", header.tokens, " positions"));
    }
    for (uint64_t t = 0; t < header.tokens; ++t) positions[t] = header.Position(t);
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_frame_describe(const uint8_t* frame, size_t frame_len, char* buf, size_t cap,
                                        size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (frame == nullptr) return Null("frame");
    KVT_ASSIGN_OR_RETURN(const std::string json, kvt::DescribeFrame(kvt::Bytes(frame, frame_len)));
    return kvt::CopyOut(json.data(), json.size(), buf, cap, needed);
  });
}

}  // extern "C"
