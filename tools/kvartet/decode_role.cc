#include "kvartet/decode_role.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "kvartet/clock.h"
#include "kvartet/generate.h"
#include "kvartet/library.h"
#include "kvartet/profile.h"
#include "kvartet/prompt.h"
#include "kvartet/pull.h"
#include "kvartet/settings.h"

namespace kvt::cli {
namespace {

constexpr int kIdleMs = 600'000;
constexpr int64_t kTransferMs = 300'000;
constexpr int64_t kDiskMs = 60'000;

class Decoder {
 public:
  // `profile` is the fingerprint of the one that P encodes with; D has none and fetches it.
  Decoder(Channel* channel, const Settings& settings, const std::string& url, const std::string& profile)
      : channel_(channel),
        settings_(settings),
        engine_(Take(engine::Engine::Open(settings.model), "--model")),
        prompt_(MakePrompt(*engine_, settings)),
        full_(NewSession(*engine_, settings, prompt_)),
        draft_(NewSession(*engine_, settings, prompt_)),
        model_(MakeModel(engine_->geometry())),
        raw_(MakeCodec(model_, "raw")),
        parts_(Parts(static_cast<int32_t>(prompt_.prefix().size()))) {
    Check(kvt_runtime_create(nullptr, runtime_.out()), "kvt_runtime_create");
    if (url.empty()) return;
    kvt_node_options_t options;
    kvt_node_options_init(&options, sizeof options);
    options.model = model_.get();
    const NamespaceDigest ns = DemoNamespace();
    std::copy(ns.begin(), ns.end(), options.namespace_digest);
    Check(kvt_node_open(runtime_.get(), &options, node_.out()), "kvt_node_open");
    Check(kvt_node_connect(node_.get(), url.data(), url.size(), 10'000, peer_.out()), "kvt_node_connect");
    MakeLossyCodec(profile);
    blobs_ = ReserveParts(*full_, parts_);
  }

  // What the coordinator needs to know; the probe of the fidelity level is made when verification is to come.
  Json Hello(bool probe) {
    if (probe) fidelity_ = ProbeFidelity(*engine_, settings_.threads, settings_.draft);
    return {{"fidelity", fidelity_.level},
            {"margin", fidelity_.margin},
            {"prompt_tokens", prompt_.tokens.size()},
            {"raw_bytes", RawBytes()},
            {"profile_moved", profile_moved_},
            {"profile_ms", profile_ms_}};
  }

  Json Run(const std::string& way, const std::string& place) {
    Take(full_->Truncate(0), "truncate");
    Take(draft_->Truncate(0), "truncate");
    totals_ = {};
    request_ = Clock();
    wait_ns_ = 0;
    if (way == "recompute") return Recompute();
    if (way == "raw") return Pulled(/*lossy=*/false);
    if (way == "lossy") return Pulled(/*lossy=*/true);
    if (way == "lossy_verified") return Verified();
    if (way == "cache_hit") return CacheHit(place);
    throw Failure("the demo has no way \"" + way + "\"");
  }

  // Puts the prompt's whole 16-token blocks of the full cache, as they lie in the session, into the cache at
  // `place`.
  Json Store(const std::string& place) {
    const std::vector<uint8_t> keys = BlockKeys(model_, prompt_.prefix());
    const size_t blocks = keys.size() / KVT_KEY_BYTES;
    const engine::KvBlob blob =
        Take(full_->Export(0, static_cast<int32_t>(blocks * KVT_GRAIN_TOKENS)), "export");
    const BlobView view(blob);
    Cache cache = OpenCache(place);
    const kvt_frame_spec_t spec = Spec();
    std::vector<kvt_status_t> results(blocks);
    uint64_t operation = 0;
    Check(kvt_cache_submit_store(cache.get(), raw_.get(), view.get(), &spec, KVT_GRAIN_TOKENS, keys.data(),
                                 blocks, results.data(), kDiskMs, &operation),
          "kvt_cache_submit_store");
    Check(kvt_cache_wait(cache.get(), operation, kDiskMs, nullptr), "kvt_cache_submit_store");
    Check(kvt_cache_close(cache.get(), kDiskMs), "kvt_cache_close");
    return {{"blocks", blocks}};
  }

 private:
  uint32_t Layers() const { return static_cast<uint32_t>(engine_->geometry().kv.layers); }

  void MakeLossyCodec(const std::string& profile) {
    if (!settings_.NeedsProfile()) {
      lossy_ = MakeCodec(model_, settings_.codec);
      layers_ = CutLayers(Layers(), {});
      return;
    }
    Progress("D fetches the profile from P");
    const FetchedProfile fetched = FetchProfile(node_, peer_, profile);
    profile_moved_ = fetched.moved;
    profile_ms_ = fetched.ms;
    lossy_ = MakeTransform(model_, fetched.profile, settings_.ratio);
    layers_ = CutLayers(Layers(), ProfileGroups(fetched.profile));
  }

  uint64_t RawBytes() const { return engine_->geometry().kv.token_bytes() * prompt_.prefix().size(); }

  void Mark(const char* part) { channel_->Send({{"part", part}}); }
  // The waiting is over; the coordinator finds P's prefill and encoding inside of it.
  void LastPieceCame() {
    wait_ns_ = request_.Nanoseconds();
    Mark("decode");
  }
  void Progress(const std::string& text) { channel_->Send({{"progress", text}}); }
  TokensSoFar OutputProgress() {
    return [this](size_t tokens) {
      Progress("generating on D: " + std::to_string(tokens) + " of " + std::to_string(settings_.tokens) +
               " tokens");
    };
  }

  kvt_frame_spec_t Spec() const {
    kvt_frame_spec_t spec;
    kvt_frame_spec_init(&spec, sizeof spec);
    const NamespaceDigest ns = DemoNamespace();
    std::copy(ns.begin(), ns.end(), spec.namespace_digest);
    return spec;
  }

  Cache OpenCache(const std::string& place) {
    Cache cache;
    Check(kvt_cache_open(runtime_.get(), place.data(), place.size(), cache.out()), "kvt_cache_open");
    return cache;
  }

  void Prefill(std::span<const int32_t> tokens) {
    Take(full_->Prefill(tokens, kPrefillChunk,
                        [this](int32_t done, int32_t total) {
                          Progress("prefill on D: " + std::to_string(done) + " of " + std::to_string(total) +
                                   " tokens");
                          return true;
                        }),
         "prefill");
  }

  // Decodes the prompt's last token: its choice is the first token of the output.
  int32_t FirstToken(engine::Session* session) {
    Mark("first_token");
    const int32_t token = Take(session->DecodeOne(prompt_.last()), "first token").token;
    channel_->Send({{"first_token", token}});
    return token;
  }

  Json Finish(engine::Session* session) {
    const int32_t first = FirstToken(session);
    const Clock clock;
    const std::vector<int32_t> tokens = GeneratePlain(session, first, settings_.tokens, OutputProgress());
    return Result(tokens, clock.Nanoseconds());
  }

  Json Result(const std::vector<int32_t>& tokens, uint64_t generate_ns) const {
    return {{"tokens", tokens},
            {"generate_ns", generate_ns},
            {"bytes_moved", bytes_moved_},
            {"checksums", totals_.checksums},
            {"wait_ns", wait_ns_},
            {"fallback", fallback_}};
  }

  Json Recompute() {
    Reset();
    Mark("prefill");
    Prefill(prompt_.prefix());
    return Finish(full_.get());
  }

  void Reset() {
    bytes_moved_ = 0;
    fallback_.clear();
  }

  // When P fails in the middle, D computes the prompt itself.
  void FallBack(const Failure& failure) {
    fallback_ = failure.what();
    Progress("D falls back to recompute: " + fallback_);
    Take(full_->Truncate(0), "truncate");
    Mark("prefill");
    Prefill(prompt_.prefix());
  }

  std::unique_ptr<StreamPull> PullLossy() const { return Pull("lossy", settings_.sinks, settings_.window); }
  std::unique_ptr<StreamPull> PullRaw() const { return Pull("raw", 0, 0); }
  std::unique_ptr<StreamPull> Pull(const std::string& label, uint32_t sinks, uint32_t window) const {
    return std::make_unique<StreamPull>(node_, peer_, NameStream(model_, prompt_.prefix(), label),
                                        CutStream(parts_, layers_, sinks, window), RawBytes(), kTransferMs);
  }

  Json Pulled(bool lossy) {
    Reset();
    Mark("transfer");
    std::unique_ptr<StreamPull> pull;  // its memory goes after the first token
    try {
      pull = lossy ? PullLossy() : PullRaw();
      Receive(node_, {pull.get()}, pull.get(), lossy ? lossy_ : raw_, blobs_, full_.get(), &totals_,
              [this] { LastPieceCame(); });
      bytes_moved_ = pull->bytes();
    } catch (const Failure& failure) {
      pull.reset();
      FallBack(failure);
    }
    return Finish(full_.get());
  }

  Json Verified() {
    Reset();
    Mark("transfer");
    const std::unique_ptr<StreamPull> lossy = PullLossy(), full = PullRaw();
    const std::vector<StreamPull*> pulls = {lossy.get(), full.get()};
    Receive(node_, pulls, lossy.get(), lossy_, blobs_, draft_.get(), &totals_, [] {});
    Take(draft_->DecodeOne(prompt_.last()), "draft");
    Receive(node_, pulls, full.get(), raw_, blobs_, full_.get(), &totals_, [this] { LastPieceCame(); });
    bytes_moved_ = lossy->bytes() + full->bytes();
    const int32_t first = FirstToken(full_.get());
    const Clock clock;
    const VerifiedRun run =
        GenerateVerified(full_.get(), draft_.get(), prompt_.tokens, first, settings_.tokens, settings_.draft,
                         engine_->geometry().vocab, fidelity_, OutputProgress());
    Json result = Result(run.tokens, clock.Nanoseconds());
    result["acceptance"] = run.stats.acceptance;
    result["mean_accepted"] = run.stats.mean_accepted;
    result["drafted"] = run.stats.drafted;
    result["accepted"] = run.stats.accepted;
    result["rounds"] = run.stats.rounds;
    result["lossy_bytes"] = lossy->bytes();
    return result;
  }

  Json CacheHit(const std::string& place) {
    Reset();
    Cache cache = OpenCache(place);
    Mark("transfer");
    const std::vector<uint8_t> keys = BlockKeys(model_, prompt_.prefix());
    size_t matched = 0;
    Check(kvt_cache_match(cache.get(), keys.data(), keys.size() / KVT_KEY_BYTES, &matched),
          "kvt_cache_match");
    const int32_t reused =
        Take(engine::ReusableTokens(static_cast<int32_t>(prompt_.prefix().size()),
                                    static_cast<int32_t>(matched * KVT_GRAIN_TOKENS), KVT_GRAIN_TOKENS),
             "reuse");
    if (reused > 0) {
      const engine::KvBlob blob = Take(full_->Reserve(0, reused), "reserve");
      const BlobView view(blob);
      const kvt_frame_spec_t spec = Spec();
      const size_t blocks = static_cast<size_t>(reused) / KVT_GRAIN_TOKENS;
      std::vector<kvt_status_t> results(blocks);
      uint64_t operation = 0;
      kvt_completion_t completion = {};
      Check(kvt_cache_submit_load(cache.get(), raw_.get(), view.get(), &spec, KVT_GRAIN_TOKENS, keys.data(),
                                  blocks, results.data(), kDiskMs, &operation),
            "kvt_cache_submit_load");
      Check(kvt_cache_wait(cache.get(), operation, kDiskMs, &completion), "kvt_cache_submit_load");
      bytes_moved_ = completion.bytes;
      Mark("decode");
      Take(full_->Commit(blob), "commit");
    }
    kvt_cache_stats_t stats = {};
    stats.struct_size = sizeof stats;
    Check(kvt_cache_stats(cache.get(), &stats), "kvt_cache_stats");
    totals_.checksums += stats.checksums;
    Mark("prefill");
    Prefill(prompt_.prefix().subspan(static_cast<size_t>(reused)));
    Json result = Finish(full_.get());
    result["blocks_hit"] = reused / KVT_GRAIN_TOKENS;
    return result;
  }

  Channel* const channel_;
  const Settings settings_;
  const std::unique_ptr<engine::Engine> engine_;
  const Prompt prompt_;
  const std::unique_ptr<engine::Session> full_, draft_;
  Model model_;
  Codec raw_, lossy_;
  const std::vector<Part> parts_;
  std::vector<LayerRange> layers_;     // of the last part's pieces
  std::vector<engine::KvBlob> blobs_;  // one a part; empty without a peer
  Runtime runtime_;
  Node node_;
  Peer peer_;
  Fidelity fidelity_;
  kvt_codec_report_t totals_ = {};
  Clock request_;         // since the command for this way came
  uint64_t wait_ns_ = 0;  // from there to the last piece of KV
  uint64_t bytes_moved_ = 0;
  std::string fallback_;
  uint64_t profile_moved_ = 0;
  double profile_ms_ = 0;
};

}  // namespace

int RunDecode(Channel channel) {
  try {
    const auto first = channel.Receive(kIdleMs);
    if (!first) return 0;
    Decoder decoder(&channel, Settings::FromJson(first->at("settings")), first->at("url").get<std::string>(),
                    first->at("profile").get<std::string>());
    channel.Send(decoder.Hello(first->at("probe").get<bool>()));
    while (const auto command = channel.Receive(kIdleMs)) {
      const std::string place = command->value("place", "");
      if (command->contains("store")) {
        channel.Send({{"stored", decoder.Store(place)}});
      } else {
        channel.Send({{"done", decoder.Run(command->at("way").get<std::string>(), place)}});
      }
    }
    return 0;
  } catch (const Failure& failure) {
    channel.Send({{"error", std::string("D: ") + failure.what()}, {"status", failure.status}});
    return 1;
  }
}

}  // namespace kvt::cli
