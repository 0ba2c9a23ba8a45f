#include "kvartet/prefill_role.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "kvartet/clock.h"
#include "kvartet/library.h"
#include "kvartet/prompt.h"
#include "kvartet/settings.h"
#include "kvartet/stream_codec.h"

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
        raw_(MakeCodec(model_, "raw")),
        lossy_(MakeCodec(model_, settings.codec)) {
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
    ReserveBlobs();
  }

  Json Hello() const {
    return {{"url", CopyText([this](char* buf, size_t cap,
                                    size_t* needed) { return kvt_node_url(node_.get(), buf, cap, needed); },
                             "kvt_node_url")}};
  }

  // Prefills and streams; `lossy` and `full` say which streams are wanted. The full one follows the lossy
  // one, so it does not delay it.
  Json Serve(bool lossy, bool full) {
    const Clock clock;
    streams_.clear();
    Take(session_->Truncate(0), "truncate");
    const std::vector<Part> parts = Parts(static_cast<int32_t>(prompt_.prefix().size()));
    uint64_t prefill_ns = 0, encode_ns = 0, queue_ns = clock.Nanoseconds();
    totals_ = {};
    if (lossy) Open("lossy");
    if (full && !lossy) Open("raw");
    for (const Part& part : parts) {
      Clock step;
      Take(session_->Prefill(prompt_.prefix().subspan(static_cast<size_t>(part.begin),
                                                      static_cast<size_t>(part.end - part.begin)),
                             kPrefillChunk),
           "prefill");
      prefill_ns += step.Nanoseconds();
      channel_->Send({{"progress", "prefill on P: " + std::to_string(part.end) + " of " +
                                       std::to_string(prompt_.prefix().size()) + " tokens"}});
      step = Clock();
      if (lossy)
        Append(lossy_, "lossy", part, part.begin == 0 ? settings_.sinks : 0,
               part.end == parts.back().end ? settings_.window : 0);
      if (full && !lossy) Append(raw_, "raw", part, 0, 0);
      encode_ns += step.Nanoseconds();
    }
    if (lossy && full) {
      Clock step;
      Open("raw");
      for (const Part& part : parts) Append(raw_, "raw", part, 0, 0);
      encode_ns += step.Nanoseconds();
    }
    for (const Stream& stream : streams_) Check(kvt_stream_finish(stream.get(), 1), "kvt_stream_finish");
    return {{"queue_ns", queue_ns},
            {"prefill_ns", prefill_ns},
            {"encode_ns", encode_ns},
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

  void Append(const Codec& codec, const std::string& label, const Part& part, uint32_t exempt_first,
              uint32_t exempt_last) {
    const auto found = std::find_if(blobs_.begin(), blobs_.end(), [&](const engine::KvBlob& blob) {
      return blob.pos_begin() == part.begin;
    });
    engine::KvBlob& blob = *found;
    Take(session_->ExportInto(blob), "export");
    kvt_codec_report_t report;
    const std::span<const uint8_t> frame = encoder_.Encode(codec, NameStream(model_, prompt_.prefix(), label),
                                                           blob, exempt_first, exempt_last, &report);
    Check(kvt_stream_append(streams_.back().get(), frame.data(), frame.size()), "kvt_stream_append");
    totals_.frame_bytes += report.frame_bytes;
    totals_.nonfinite += report.nonfinite;
  }

  Channel* const channel_;
  const Settings settings_;
  const std::unique_ptr<engine::Engine> engine_;
  const Prompt prompt_;
  const std::unique_ptr<engine::Session> session_;
  Model model_;
  Codec raw_, lossy_;
  Runtime runtime_;
  Node node_;
  std::vector<engine::KvBlob> blobs_;  // one a part
  PartEncoder encoder_;
  std::vector<Stream> streams_;  // of the last request; kept until the next, so that D can pull to the end
  kvt_codec_report_t totals_ = {};
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
