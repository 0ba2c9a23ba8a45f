#include "kvartet/rung_costs.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "kvartet/clock.h"
#include "kvartet/quality_coder.h"

namespace kvt::cli {
namespace {

constexpr int kRounds = 3;      // the median counts, so the first may be a slow one
constexpr uint32_t kSinks = 4;  // tokens that are kept raw, as when caches are moved
constexpr double kClassesPerNat = 1e6;
constexpr size_t kProcessorMost = 103;  // bytes that a profile takes

struct RungName {
  const char* codec;
  uint32_t ratio;  // 0: needs no profile
};
constexpr RungName kRungs[] = {{"lossless", 0},   {"int8", 0},   {"kivi4", 0},
                               {"transform", 16}, {"dense", 20}, {"dense", 40}};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The worst one for a divergence that is no number.
uint32_t QualityClass(double divergence) {
  const double classes = std::ceil(divergence * kClassesPerNat);
  return classes < UINT32_MAX ? static_cast<uint32_t>(classes) : UINT32_MAX;
}

struct Trial {
  Trial(const RungName& rung, Codec own) : name(rung), codec(std::move(own)) {}
  RungName name;
  Codec codec;
  std::vector<double> encode, decode;  // seconds
  size_t frame_bytes = 0;
  double divergence = 0;
};

std::vector<Trial> MakeTrials(const Model& model, std::span<const uint8_t> profile, uint32_t ratio_min) {
  std::vector<Trial> trials;
  for (const RungName& rung : kRungs) {
    if (rung.ratio == 0) {
      trials.emplace_back(rung, MakeCodec(model, rung.codec));
    } else if (rung.ratio >= ratio_min) {
      trials.emplace_back(rung, MakeProfileCodec(model, rung.codec, profile, rung.ratio));
    }
  }
  return trials;
}

}  // namespace

std::vector<kvt_profile_rung_t> MeasureRungs(const engine::Engine& engine, const Model& model,
                                             const ProbeDocument& document, std::span<const uint8_t> profile,
                                             uint32_t ratio_min) {
  std::vector<Trial> trials = MakeTrials(model, profile, ratio_min);
  ForcedOutput output(engine, document);
  const std::vector<float> full = output.Logits(document.rows);
  ContextCoder coder(kSinks, 0);
  const engine::KvBlob decoded =
      Take(engine::KvBlob::Create(document.rows.geometry(), 0, document.rows.tokens()), "rows");
  for (int round = 0; round < kRounds; ++round) {
    for (Trial& trial : trials) {
      const Clock clock;
      const std::span<const uint8_t> frame = coder.Encode(trial.codec, document.rows, {});
      const double encoded = clock.Milliseconds() / 1000;
      DecodeContext(trial.codec, frame, decoded);
      trial.encode.push_back(encoded);
      trial.decode.push_back(clock.Milliseconds() / 1000 - encoded);
      if (round > 0) continue;
      trial.frame_bytes = frame.size();
      trial.divergence = output.Divergence(full, output.Logits(decoded));
    }
  }
  const auto bytes = static_cast<double>(document.rows.geometry().token_bytes() *
                                         static_cast<uint64_t>(document.rows.tokens()));
  std::vector<kvt_profile_rung_t> rungs;
  for (const Trial& trial : trials) {
    kvt_profile_rung_t rung = {};
    std::strncpy(rung.codec, trial.name.codec, sizeof rung.codec - 1);
    rung.ratio = trial.name.ratio;
    rung.cost.encode_rate = bytes / Median(trial.encode);
    rung.cost.decode_rate = bytes / Median(trial.decode);
    rung.cost.ratio = bytes / static_cast<double>(trial.frame_bytes);
    rung.cost.quality_class = QualityClass(trial.divergence);
    rungs.push_back(rung);
  }
  return rungs;
}

std::string ProcessorName() {
  std::string name;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; name.empty() && std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) name = line.substr(colon + 2);
  }
  if (name.empty()) {
    utsname system;
    uname(&system);
    name = system.machine;
  }
  std::erase_if(name, [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; });
  return name.substr(0, kProcessorMost);
}

std::vector<uint8_t> ProfileWithRungs(std::span<const uint8_t> profile,
                                      std::span<const kvt_profile_rung_t> rungs,
                                      const std::string& processor) {
  std::vector<uint8_t> with;
  CopyBytes(
      [&](uint8_t* buf, size_t cap, size_t* needed) {
        return kvt_profile_set_rungs(profile.data(), profile.size(), rungs.data(), rungs.size(),
                                     processor.data(), processor.size(), buf, cap, needed);
      },
      "kvt_profile_set_rungs", &with);
  return with;
}

}  // namespace kvt::cli
