#include "kvartet/prefill_role.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "kvartet/clock.h"
#include "kvartet/files.h"
#include "kvartet/library.h"
#include "kvartet/profile.h"
#include "kvartet/prompt.h"
#include "kvartet/settings.h"
#include "kvartet/stream_codec.h"
#include "kvartet/worker.h"

namespace kvt::cli {
namespace {

constexpr int kIdleMs = 600'000;

class Prefiller {
 public:
  Prefiller(Channel* channel, const Settings& settings)
      : channel_(channel),
        settings_(settings),
        engine_(Take(engine::Engine::Open(settings.model), "--model")),
        prompt_(MakePrompt(*engine_, settings)),
        session_(NewSession(*engine_, settings, prompt_)),
        model_(MakeModel(engine_->geometry())),
        raw_(MakeCodec(model_, "raw")) {
    Check(kvt_runtime_create(nullptr, runtime_.out()), "kvt_runtime_create");
    kvt_node_options_t options;
    kvt_node_options_init(&options, sizeof options);
    const std::string url =
        "tcp://127.0.0.1:0" + (settings.bandwidth.empty() ? "" : "?bandwidth=" + settings.bandwidth);
    options.listen = url.data();
    options.listen_len = url.size();
    options.model = model_.get();
    const NamespaceDigest ns = DemoNamespace();
    std::copy(ns.begin(), ns.end(), options.namespace_digest);
    Check(kvt_node_open(runtime_.get(), &options, node_.out()), "kvt_node_open");
    MakeLossyCodec();
    ReserveBlobs();
  }

  Json Hello() const {
    return {{"url", CopyText([this](char* buf, size_t cap,
                                    size_t* needed) { return kvt_node_url(node_.get(), buf, cap, needed); },
                             "kvt_node_url")},
            {"profile", profile_},
            {"profile_bytes", profile_bytes_}};
  }

  // Prefills and streams; `lossy` and `full` say which streams are wanted. The full one follows the lossy
  // one, so it does not delay it.
  Json Serve(bool lossy, bool full) {
    const Clock clock;
    streams_.clear();
    Take(session_->Truncate(0), "truncate");
    const std::vector<Part> parts = Parts(static_cast<int32_t>(prompt_.prefix().size()));
    const uint64_t queue_ns = clock.Nanoseconds();
    uint64_t prefill_ns = 0;
    totals_ = {};
    if (lossy) Open("lossy");
    if (full && !lossy) Open("raw");
    for (const Part& part : parts) {
      Take(session_->Prefill(prompt_.prefix().subspan(static_cast<size_t>(part.begin),
                                                      static_cast<size_t>(part.end - part.begin)),
                             kPrefillChunk),
           "prefill");
      prefill_ns = clock.Nanoseconds() - queue_ns;
      channel_->Send({{"progress", "prefill on P: " + std::to_string(part.end) + " of " +
                                       std::to_string(prompt_.prefix().size()) + " tokens"}});
      engine::KvBlob& blob = blobs_[static_cast<size_t>(&part - parts.data())];
      Take(session_->ExportInto(blob), "export");
      // Encoded by the other thread while the next part is computed.
      if (lossy) {
        Append(lossy_, "lossy", blob, part.begin == 0 ? settings_.sinks : 0,
               part.end == parts.back().end ? settings_.window : 0);
      }
      if (full && !lossy) Append(raw_, "raw", blob, 0, 0);
    }
    if (lossy && full) {
      Open("raw");
      for (const engine::KvBlob& blob : blobs_) Append(raw_, "raw", blob, 0, 0);
    }
    encoding_.Wait();
    for (const Stream& stream : streams_) Check(kvt_stream_finish(stream.get(), 1), "kvt_stream_finish");
    return {{"queue_ns", queue_ns},
            {"prefill_ns", prefill_ns},
            {"encode_ns", clock.Nanoseconds() - queue_ns - prefill_ns},  // what the prefill did not hide
            {"frame_bytes", totals_.frame_bytes},
            {"nonfinite", totals_.nonfinite}};
  }

 private:
  // Memory for every part, touched before the first request so that none pays for it.
  void ReserveBlobs() {
    for (const Part& part : Parts(static_cast<int32_t>(prompt_.prefix().size()))) {
      engine::KvBlob blob = Take(session_->Reserve(part.begin, part.end - part.begin), "reserve");
      std::fill(blob.bytes().begin(), blob.bytes().end(), 0);
      blob.WriteHeaders();
      blobs_.push_back(std::move(blob));
    }
  }

  void Open(const std::string& label) {
    const StreamName name = NameStream(model_, prompt_.prefix(), label);
    Stream stream;
    Check(kvt_stream_open(node_.get(), name.key.data(), stream.out()), "kvt_stream_open");
    streams_.push_back(std::move(stream));
  }

  // Encodes a part into the stream that was opened last.
  void Append(const Codec& codec, const std::string& label, const engine::KvBlob& blob, uint32_t exempt_first,
              uint32_t exempt_last) {
    encoding_.Run([this, &codec, name = NameStream(model_, prompt_.prefix(), label), &blob,
                   stream = streams_.back().get(), exempt_first, exempt_last] {
      kvt_codec_report_t report;
      const std::span<const uint8_t> frame =
          encoder_.Encode(codec, name, blob, exempt_first, exempt_last, &report);
      Check(kvt_stream_append(stream, frame.data(), frame.size()), "kvt_stream_append");
      totals_.frame_bytes += report.frame_bytes;
      totals_.nonfinite += report.nonfinite;
    });
  }

  void MakeLossyCodec() {
    if (!settings_.NeedsProfile()) {
      lossy_ = MakeCodec(model_, settings_.codec);
      return;
    }
    const std::vector<uint8_t> profile = ReadFile(settings_.profile);
    try {
      lossy_ = MakeTransform(model_, profile, settings_.ratio);
    } catch (const Failure& failure) {
      throw Failure(settings_.profile + ": " + failure.what(), failure.status);
    }
    profile_ = ProfileFingerprint(profile);
    profile_bytes_ = profile.size();
    offered_ = OfferProfile(runtime_, node_, profile);
  }

  Channel* const channel_;
  const Settings settings_;
  const std::unique_ptr<engine::Engine> engine_;
  const Prompt prompt_;
  const std::unique_ptr<engine::Session> session_;
  Model model_;
  Codec raw_, lossy_;
  Runtime runtime_;
  Cache offered_;  // the profile
  Node node_;
  std::string profile_;  // its fingerprint; empty: the codec has none
  size_t profile_bytes_ = 0;
  std::vector<engine::KvBlob> blobs_;  // one a part
  PartEncoder encoder_;
  std::vector<Stream> streams_;  // of the last request; kept until the next, so that D can pull to the end
  kvt_codec_report_t totals_ = {};
  Worker encoding_;  // the last member: its tasks use the others
};

}  // namespace

int RunPrefill(Channel channel) {
  try {
    const auto first = channel.Receive(kIdleMs);
    if (!first) return 0;
    Prefiller prefiller(&channel, Settings::FromJson(*first));
    channel.Send(prefiller.Hello());
    while (const auto command = channel.Receive(kIdleMs)) {
      channel.Send(
          {{"served", prefiller.Serve(command->at("lossy").get<bool>(), command->at("full").get<bool>())}});
    }
    return 0;
  } catch (const Failure& failure) {
    channel.Send({{"error", std::string("P: ") + failure.what()}});
    return 1;
  }
}

}  // namespace kvt::cli
