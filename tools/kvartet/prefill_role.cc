#include "kvartet/prefill_role.h"

#include <algorithm>
#include <deque>
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
        raw_(MakeCodec(model_, "raw")),
        parts_(Parts(static_cast<int32_t>(prompt_.prefix().size()))),
        blobs_(ReserveParts(*session_, parts_)) {
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
    const uint64_t queue_ns = clock.Nanoseconds();
    uint64_t prefill_ns = 0;
    totals_ = {};
    if (lossy) Open("lossy", lossy_, settings_.sinks, settings_.window);
    if (full && !lossy) Open("raw", raw_, 0, 0);
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      Take(session_->Prefill(prompt_.prefix().subspan(static_cast<size_t>(part.begin),
                                                      static_cast<size_t>(part.end - part.begin)),
                             kPrefillChunk),
           "prefill");
      prefill_ns = clock.Nanoseconds() - queue_ns;
      channel_->Send({{"progress", "prefill on P: " + std::to_string(part.end) + " of " +
                                       std::to_string(prompt_.prefix().size()) + " tokens"}});
      Take(session_->ExportInto(blobs_[i]), "export");
      if (lossy || full) Append(streams_.back(), i);
    }
    if (lossy && full) {
      Open("raw", raw_, 0, 0);
      for (size_t i = 0; i < parts_.size(); ++i) Append(streams_.back(), i);
    }
    encoding_.Wait();
    for (const Outgoing& out : streams_) Check(kvt_stream_finish(out.stream.get(), 1), "kvt_stream_finish");
    return {{"queue_ns", queue_ns},
            {"prefill_ns", prefill_ns},
            {"encode_ns", clock.Nanoseconds() - queue_ns - prefill_ns},  // what the prefill did not hide
            {"frame_bytes", totals_.frame_bytes},
            {"nonfinite", totals_.nonfinite}};
  }

 private:
  struct Outgoing {
    const Codec* codec;
    StreamName name;
    std::vector<Piece> pieces;
    Stream stream;
  };

  void Open(const std::string& label, const Codec& codec, uint32_t sinks, uint32_t window) {
    Outgoing out{&codec, NameStream(model_, prompt_.prefix(), label),
                 CutStream(parts_, layers_, sinks, window), Stream()};
    Check(kvt_stream_open(node_.get(), out.name.key.data(), out.stream.out()), "kvt_stream_open");
    streams_.push_back(std::move(out));
  }

  // Encodes a part and appends it. One piece: by the other thread, while this one computes the next part.
  // Several: by both, and appended in order before this returns.
  void Append(const Outgoing& out, size_t part) {
    size_t i = 0;
    while (out.pieces[i].part != part) ++i;
    const size_t end = EndOfPart(out.pieces, i);
    if (end - i == 1) {
      encoding_.Run([this, &out, i] { Send(out, Encode(&helpers_, out, i)); });
      return;
    }
    encoding_.Wait();
    // An odd one goes ahead alone: most often the window, which takes no time.
    if ((end - i) % 2 != 0) Send(out, Encode(&own_, out, i++));
    for (; i < end; i += 2) {
      encoding_.Run([this, &out, i] { Send(out, Encode(&helpers_, out, i)); });
      const Encoded second = Encode(&own_, out, i + 1);
      encoding_.Wait();
      Send(out, second);
    }
  }

  struct Encoded {
    std::span<const uint8_t> frame;
    kvt_codec_report_t report;
  };
  Encoded Encode(PartEncoder* encoder, const Outgoing& out, size_t i) const {
    const Piece& piece = out.pieces[i];
    Encoded encoded;
    encoded.frame = encoder->Encode(piece.kept_raw ? raw_ : *out.codec, out.name, blobs_[piece.part], piece,
                                    &encoded.report);
    return encoded;
  }

  // By one thread at a time.
  void Send(const Outgoing& out, const Encoded& encoded) {
    Check(kvt_stream_append(out.stream.get(), encoded.frame.data(), encoded.frame.size()),
          "kvt_stream_append");
    totals_.frame_bytes += encoded.report.frame_bytes;
    totals_.nonfinite += encoded.report.nonfinite;
  }

  uint32_t Layers() const { return static_cast<uint32_t>(engine_->geometry().kv.layers); }

  void MakeLossyCodec() {
    if (!settings_.NeedsProfile()) {
      lossy_ = MakeCodec(model_, settings_.codec);
      layers_ = CutLayers(Layers(), {});
      return;
    }
    const std::vector<uint8_t> profile = ReadFile(settings_.profile);
    try {
      lossy_ = MakeTransform(model_, profile, settings_.ratio);
    } catch (const Failure& failure) {
      throw Failure(settings_.profile + ": " + failure.what(), failure.status);
    }
    profile_ = ProfileFingerprint(profile);
    layers_ = CutLayers(Layers(), ProfileGroups(profile));
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
  std::vector<LayerRange> layers_;  // of the last part's pieces
  const std::vector<Part> parts_;
  std::vector<engine::KvBlob> blobs_;  // one a part
  PartEncoder own_, helpers_;
  std::deque<Outgoing> streams_;  // of the last request; kept until the next, so that D can pull to the end
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
