#include "kvartet/demo.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "kvartet/calibrate_command.h"
#include "kvartet/clock.h"
#include "kvartet/files.h"
#include "kvartet/library.h"
#include "kvartet/process.h"
#include "kvartet/progress_line.h"
#include "kvartet/report.h"

namespace kvt::cli {
namespace {

constexpr int kSignOfLifeMs = 300'000;

struct Way {
  const char* name;
  const char* title;
  bool lossy, full;  // streams that P is to serve
  bool must_be_equal;
};
constexpr Way kRecompute = {"recompute", "recompute on D", false, false, true};
constexpr Way kRaw = {"raw", "raw frames", false, true, true};
constexpr Way kLossy = {"lossy", "lossy, not verified", true, false, false};
constexpr Way kVerified = {"lossy_verified", "lossy, verified", true, true, true};
constexpr Way kCacheHit = {"cache_hit", "again, disk cache of restarted D", false, false, true};

// A directory that goes when the demo ends.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kvartet-demo-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Failure("no temporary directory: " + pattern);
    path_ = pattern;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Demo {
 public:
  Demo(const Settings& settings, const std::string& deps) : settings_(settings), deps_(deps) {
    Check(kvt_runtime_create(nullptr, runtime_.out()), "kvt_runtime_create");
    Check(kvt_meter_create(runtime_.get(), meter_.out()), "kvt_meter_create");
  }

  DemoReport Run() {
    if (settings_.NeedsProfile() && settings_.profile.empty()) settings_.profile = FindProfile();
    progress_.Show("starting: P and D load the model");
    prefill_.emplace("prefill");
    prefill_->channel().Send(settings_.ToJson());
    const Json hello = Expect(*prefill_, "url");
    report_.profile = hello.at("profile").get<std::string>();
    report_.profile_bytes = hello.at("profile_bytes").get<uint64_t>();
    StartDecode(hello.at("url").get<std::string>(), true);
    RunWay(kRecompute, "");
    RunWay(kRaw, "");
    if (!settings_.fault.empty()) return Finish();
    const std::string place = "file:" + scratch_.path() + "/cache?capacity=4GiB";
    decode_->channel().Send({{"store", true}, {"place", place}});
    Expect(*decode_, "stored");
    RunWay(kLossy, "");
    RunWay(kVerified, "");
    decode_.reset();
    StartDecode("", false);
    RunWay(kCacheHit, place);
    return Finish();
  }

 private:
  // The profile that goes with the calibration settings; the first run calibrates.
  std::string FindProfile() {
    const std::unique_ptr<engine::Engine> engine = Take(engine::Engine::Open(settings_.model), "--model");
    CalibrationSettings calibration;
    calibration.texts = DefaultTexts(deps_);
    calibration.tokens = settings_.calibration_tokens;
    calibration.ratio_min = std::min(calibration.ratio_min, settings_.ratio);
    return EnsureProfile(*engine, MakeModel(engine->geometry()), calibration, deps_,
                         [this](const std::string& text) { progress_.Show(text); });
  }

  void StartDecode(const std::string& url, bool probe) {
    progress_.Show(probe ? "starting: D probes its fidelity level" : "restarting: D loads the model again");
    decode_.emplace("decode");
    Settings settings = settings_;
    settings.profile.clear();
    decode_->channel().Send(
        {{"settings", settings.ToJson()}, {"url", url}, {"profile", report_.profile}, {"probe", probe}});
    const Json hello = Expect(*decode_, "fidelity");
    if (probe) report_.fidelity = std::string(1, "NABC"[std::clamp(hello.at("fidelity").get<int>(), 0, 3)]);
    report_.prompt_tokens = hello.at("prompt_tokens").get<int32_t>();
    report_.raw_bytes = hello.at("raw_bytes").get<uint64_t>();
    if (!probe) return;
    report_.profile_moved = hello.at("profile_moved").get<uint64_t>();
    report_.profile_ms = hello.at("profile_ms").get<double>();
  }

  // The next message that has `key`; progress is shown on the way.
  Json Expect(Process& process, const char* key) {
    for (;;) {
      const std::optional<Json> message = process.channel().Receive(kSignOfLifeMs);
      if (!message) throw Failure("a process of the demo ended early");
      if (message->contains("error")) throw Failure(message->at("error").get<std::string>());
      if (message->contains("progress")) progress_.Show(message->at("progress").get<std::string>());
      if (message->contains(key)) return *message;
    }
  }

  void RunWay(const Way& way, const std::string& place) {
    const std::string name = way.name;
    const Clock clock;
    Check(kvt_request_begin(meter_.get(), name.data(), name.size(), &request_), "kvt_request_begin");
    Check(
        kvt_request_part(meter_.get(), request_, way.lossy || way.full ? KVT_PART_TRANSFER : KVT_PART_QUEUE),
        "kvt_request_part");
    decode_->channel().Send({{"way", way.name}, {"place", place}});
    if (way.lossy || way.full) prefill_->channel().Send({{"lossy", way.lossy}, {"full", way.full}});
    const Outcome outcome = Collect(way);
    Row row = MakeRow(way, outcome);
    row.total_ms = clock.Milliseconds();
    Attribute(outcome);
    CountAndEnd(outcome, row);
    FillTtft(way, &row);
    report_.rows.push_back(row);
  }

  struct Outcome {
    Json done;
    std::optional<Json> served;  // P's times; nothing when P failed or was not asked
  };

  // Follows both processes until D is done (and P, if it was asked and lives).
  Outcome Collect(const Way& way) {
    Outcome outcome;
    waiting_for_p_ = way.lossy || way.full;
    while (outcome.done.is_null() || waiting_for_p_) {
      pollfd fds[2] = {{decode_->channel().fd(), POLLIN, 0},
                       {waiting_for_p_ ? prefill_->channel().fd() : -1, POLLIN, 0}};
      if (poll(fds, 2, kSignOfLifeMs) <= 0) {
        throw Failure("no sign of life from P and D for " + std::to_string(kSignOfLifeMs) + " ms",
                      KVT_ERR_TIMEOUT);
      }
      if (fds[0].revents != 0) {
        do FromDecode(&outcome);
        while (decode_->channel().HasMessage());
      }
      if (fds[1].revents != 0) {
        do FromPrefill(&outcome);
        while (prefill_->channel().HasMessage());
      }
    }
    return outcome;
  }

  void FromPrefill(Outcome* outcome) {
    const std::optional<Json> message = prefill_->channel().Receive(kSignOfLifeMs);
    if (!message) {
      if (settings_.fault.empty()) throw Failure("P ended early");
      waiting_for_p_ = false;
      return;
    }
    if (message->contains("error")) throw Failure(message->at("error").get<std::string>());
    if (message->contains("served")) {
      outcome->served = message->at("served");
      waiting_for_p_ = false;
    }
    if (!message->contains("progress")) return;
    progress_.Show(message->at("progress").get<std::string>());
    if (++progress_of_p_ == 2 && !settings_.fault.empty()) {
      prefill_->Signal(settings_.fault == "kill" ? SIGKILL : SIGSTOP);
      waiting_for_p_ = false;
    }
  }

  void FromDecode(Outcome* outcome) {
    const std::optional<Json> message = decode_->channel().Receive(kSignOfLifeMs);
    if (!message) throw Failure("D ended early");
    if (message->contains("error")) throw Failure(message->at("error").get<std::string>());
    if (message->contains("progress")) progress_.Show(message->at("progress").get<std::string>());
    if (message->contains("part")) {
      const std::string part = message->at("part").get<std::string>();
      const int32_t id = part == "prefill"    ? KVT_PART_PREFILL
                         : part == "transfer" ? KVT_PART_TRANSFER
                         : part == "decode"   ? KVT_PART_DECODE
                                              : KVT_PART_FIRST_TOKEN;
      Check(kvt_request_part(meter_.get(), request_, id), "kvt_request_part");
    }
    if (message->contains("first_token"))
      Check(kvt_request_first_token(meter_.get(), request_), "kvt_request_first_token");
    if (message->contains("done")) outcome->done = message->at("done");
  }

  // D waited for P's prefill and encoding inside its transfer; P says how long they were.
  void Attribute(const Outcome& outcome) {
    if (!outcome.served || !outcome.done.at("fallback").get<std::string>().empty()) return;
    const std::pair<const char*, int32_t> parts[] = {
        {"queue_ns", KVT_PART_QUEUE}, {"prefill_ns", KVT_PART_PREFILL}, {"encode_ns", KVT_PART_ENCODE}};
    // What P did after D had the last part (freeing its buffers) was not waited for.
    uint64_t waited = outcome.done.at("wait_ns").get<uint64_t>();
    for (const auto& [key, part] : parts) {
      const uint64_t amount = std::min(waited, outcome.served->at(key).get<uint64_t>());
      waited -= amount;
      Check(kvt_request_attribute(meter_.get(), request_, KVT_PART_TRANSFER, part, amount),
            "kvt_request_attribute");
    }
  }

  Row MakeRow(const Way& way, const Outcome& outcome) {
    const Json& done = outcome.done;
    Row row;
    row.way = way.name;
    row.title = way.title;
    row.must_be_equal = way.must_be_equal;
    const std::vector<int32_t> tokens = done.at("tokens").get<std::vector<int32_t>>();
    if (reference_.empty()) reference_ = tokens;
    row.tokens = static_cast<int32_t>(tokens.size());
    for (size_t i = 0; i < std::min(tokens.size(), reference_.size()); ++i)
      row.equal_tokens += tokens[i] == reference_[i] ? 1 : 0;
    row.bytes_moved = done.at("bytes_moved").get<uint64_t>();
    if (row.bytes_moved != 0)
      row.ratio = static_cast<double>(report_.raw_bytes) / static_cast<double>(row.bytes_moved);
    const double seconds = static_cast<double>(done.at("generate_ns").get<uint64_t>()) / 1e9;
    if (seconds > 0) row.tokens_per_s = static_cast<double>(row.tokens - 1) / seconds;
    if (const std::string fallback = done.at("fallback").get<std::string>(); !fallback.empty())
      row.note = "fell back to recompute: " + fallback;
    return row;
  }

  void CountAndEnd(const Outcome& outcome, const Row& row) {
    const Json& done = outcome.done;
    const auto count = [&](int32_t counter, uint64_t amount) {
      Check(kvt_request_count(meter_.get(), request_, counter, amount), "kvt_request_count");
    };
    if (row.bytes_moved != 0) count(KVT_COUNTER_BYTES_RAW, report_.raw_bytes);
    count(KVT_COUNTER_BYTES_MOVED, row.bytes_moved);
    count(KVT_COUNTER_CHECKSUMS, done.at("checksums").get<uint64_t>());
    count(KVT_COUNTER_TOKENS_PROMPT, static_cast<uint64_t>(report_.prompt_tokens));
    count(KVT_COUNTER_TOKENS_OUTPUT, static_cast<uint64_t>(row.tokens));
    if (done.contains("blocks_hit")) count(KVT_COUNTER_BLOCKS_HIT, done.at("blocks_hit").get<uint64_t>());
    if (outcome.served) count(KVT_COUNTER_NONFINITE, outcome.served->at("nonfinite").get<uint64_t>());
    report_.checksums += done.at("checksums").get<uint64_t>();
    if (done.contains("acceptance")) {
      report_.acceptance = done.at("acceptance").get<double>();
      report_.mean_accepted = done.at("mean_accepted").get<double>();
      count(KVT_COUNTER_TOKENS_DRAFTED, done.at("drafted").get<uint64_t>());
      count(KVT_COUNTER_TOKENS_ACCEPTED, done.at("accepted").get<uint64_t>());
    }
    Check(kvt_request_end(meter_.get(), request_), "kvt_request_end");
  }

  // One request a way: the meter's means are its values.
  void FillTtft(const Way& way, Row* row) {
    const Json json = Json::parse(
        CopyText([this](char* buf, size_t cap,
                        size_t* needed) { return kvt_meter_json(meter_.get(), buf, cap, needed); },
                 "kvt_meter_json"));
    for (const Json& entry : json.at("ways")) {
      if (entry.at("way") != way.name) continue;
      for (size_t i = 0; i < kParts.size(); ++i)
        row->ttft_ms[i] = entry.at("ttft_ms").at(kParts[i]).get<double>();
      // Before the first part begins, the request waits for someone to take it up.
      row->ttft_ms[0] += entry.at("ttft_ms").at("other").get<double>();
      row->ttft_total_ms = entry.at("ttft_ms").at("total").get<double>();
    }
  }

  DemoReport Finish() {
    progress_.Clear();
    report_.advice =
        CopyText([this](char* buf, size_t cap,
                        size_t* needed) { return kvt_meter_advice(meter_.get(), buf, cap, needed); },
                 "kvt_meter_advice");
    report_.codec = settings_.codec;
    if (settings_.NeedsProfile()) report_.codec += " at " + std::to_string(settings_.ratio);
    report_.bandwidth = settings_.bandwidth;
    report_.model = std::filesystem::path(settings_.model).filename().string();
    return report_;
  }

  Settings settings_;
  const std::string deps_;
  const ScratchDirectory scratch_;
  ProgressLine progress_;
  Runtime runtime_;
  Meter meter_;
  uint64_t request_ = 0;
  std::optional<Process> prefill_, decode_;
  bool waiting_for_p_ = false;
  int progress_of_p_ = 0;
  std::vector<int32_t> reference_;
  DemoReport report_;
};

}  // namespace

int RunDemo(const Settings& settings, const std::string& deps) {
  const DemoReport report = Demo(settings, deps).Run();
  std::fputs(ToTable(report).c_str(), stdout);
  if (!settings.json.empty()) WriteFile(settings.json, ToJson(report).dump(2) + "\n");
  if (!settings.html.empty()) WriteFile(settings.html, ToHtml(report));
  const std::vector<std::string> defects = report.Defects();
  for (const std::string& defect : defects) std::fprintf(stderr, "kvartet demo: %s\n", defect.c_str());
  return defects.empty() ? 0 : 1;
}

}  // namespace kvt::cli
