#include "plan/planner.h"

#include <cmath>
#include <limits>

#include "base/random.h"
#include "codec/rung.h"

namespace kvt {
namespace {

constexpr uint32_t kRungsMax = 256, kSegmentsMax = 1u << 20;
constexpr uint64_t kBytesMax = uint64_t{1} << 50;
// Rows that are sent as they are may be copied on both sides, as fast as this. Whether they are, and how fast
// in truth, is learnt.
constexpr double kCopyRate = 10e9;
// Before anything was observed.
constexpr Correction kRungIsAsMeasured = {1, 1, 0}, kNoneDoesNotCopy = {0, 1, 0};

Status Bad(absl::string_view field, const absl::AlphaNum& value, absl::string_view expected) {
  return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(field, " is ", value, ", expected ", expected));
}

Status CheckBandwidth(absl::string_view field, double bandwidth) {
  if (bandwidth >= kRateMin && bandwidth <= kRateMax) return OkStatus();
  return Bad(field, bandwidth, "1 to 1e15");
}

Status CheckTransfer(absl::string_view name, uint64_t bytes, uint32_t segments) {
  if (bytes == 0 || bytes > kBytesMax)
    return Bad(absl::StrCat(name, "bytes"), bytes, absl::StrCat("1 to ", kBytesMax));
  if (segments == 0 || segments > kSegmentsMax)
    return Bad(absl::StrCat(name, "segments"), segments, absl::StrCat("1 to ", kSegmentsMax));
  return OkStatus();
}

}  // namespace

kvt_planner_options_t DefaultPlannerOptions() {
  kvt_planner_options_t options = {};
  options.struct_size = sizeof options;
  return options;
}

kvt_codec_request_t DefaultCodecRequest() {
  kvt_codec_request_t request = {};
  request.struct_size = sizeof request;
  request.segments = 1;
  request.quality_max = UINT32_MAX;
  return request;
}

StatusOr<std::shared_ptr<Planner>> Planner::Create(const kvt_planner_options_t& options) {
  if (options.rung_count == 0 || options.rung_count > kRungsMax)
    return Bad("kvt_planner_options.rung_count", options.rung_count, absl::StrCat("1 to ", kRungsMax));
  if (options.rungs == nullptr)
    return Bad("kvt_planner_options.rungs", "NULL", absl::StrCat(options.rung_count, " rungs"));
  std::vector<kvt_codec_rung_t> rungs(options.rungs, options.rungs + options.rung_count);
  for (size_t i = 0; i < rungs.size(); ++i) {
    KVT_RETURN_IF_ERROR(
        CheckRung(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("kvt_planner_options.rungs[", i, "]."), rungs[i]));
  }
  return std::shared_ptr<Planner>(new Planner(std::move(rungs), options.seed));
}

Planner::Planner(std::vector<kvt_codec_rung_t> rungs, uint64_t seed)
    : rungs_(std::move(rungs)), random_(seed), models_(rungs_.size(), RungModel(kRungIsAsMeasured)) {
  models_.emplace_back(kNoneDoesNotCopy);
}

StageTimes Planner::Stages(size_t model, uint64_t bytes, double bandwidth, uint32_t segments) const {
  StageTimes stages;
  stages.segments = segments;
  const auto size = static_cast<double>(bytes);
  stages.send = size / bandwidth;
  if (model == rungs_.size()) {
    stages.encode = stages.decode = size / kCopyRate;
    stages.codec_least = 0;
    return stages;
  }
  const kvt_codec_rung_t& rung = rungs_[model];
  stages.encode = size / rung.encode_rate;
  stages.decode = size / rung.decode_rate;
  stages.send /= rung.ratio;
  return stages;
}

double Planner::Normal() {
  // Box and Muller's transform of two uniform numbers.
  double uniform[2];
  for (double& value : uniform) {
    value = (static_cast<double>(SplitMix64(&random_) >> 11) + 0.5) * 0x1p-53;
  }
  return std::sqrt(-2 * std::log(uniform[0])) * std::cos(2 * M_PI * uniform[1]);
}

StatusOr<kvt_codec_choice_t> Planner::Pick(const kvt_codec_request_t& request) {
  KVT_RETURN_IF_ERROR(CheckTransfer("kvt_codec_request.", request.bytes, request.segments));
  KVT_RETURN_IF_ERROR(CheckBandwidth("kvt_codec_request.bandwidth", request.bandwidth));
  if (request.reserved != 0) return Bad("kvt_codec_request.reserved", request.reserved, "0");
  kvt_codec_choice_t choice = {};
  choice.struct_size = sizeof choice;
  choice.bytes = request.bytes;
  choice.bandwidth = request.bandwidth;
  choice.segments = request.segments;
  MutexLock lock(&mu_);
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < models_.size(); ++i) {
    const bool none = i == rungs_.size();
    // Draws are made for rungs that are out of the question too, so that they are the same for all requests.
    const Correction drawn = models_[i].Draw({Normal(), Normal(), Normal()});
    if (!none && rungs_[i].quality_class > request.quality_max) continue;
    const StageTimes stages = Stages(i, request.bytes, request.bandwidth, request.segments);
    const double seconds = TransferTime(stages, drawn);
    if (seconds >= least) continue;
    least = seconds;
    choice.rung = none ? KVT_RUNG_NONE : static_cast<uint32_t>(i);
    choice.seconds = TransferTime(stages, models_[i].mean());
    choice.model = TransferTime(stages, none ? kNoneDoesNotCopy : kRungIsAsMeasured);
  }
  return choice;
}

Status Planner::Observe(const kvt_codec_choice_t& choice, double seconds) {
  if (choice.rung != KVT_RUNG_NONE && choice.rung >= rungs_.size())
    return Bad("kvt_codec_choice.rung", choice.rung, absl::StrCat("less than ", rungs_.size()));
  KVT_RETURN_IF_ERROR(CheckTransfer("kvt_codec_choice.", choice.bytes, choice.segments));
  KVT_RETURN_IF_ERROR(CheckBandwidth("kvt_codec_choice.bandwidth", choice.bandwidth));
  if (choice.reserved != 0) return Bad("kvt_codec_choice.reserved", choice.reserved, "0");
  if (!(seconds > 0 && seconds <= 1e9)) return Bad("seconds", seconds, "more than 0, at most 1e9");
  MutexLock lock(&mu_);
  const size_t model = ModelOf(choice.rung);
  for (RungModel& each : models_) each.Forget();
  models_[model].Observe(Stages(model, choice.bytes, choice.bandwidth, choice.segments), seconds);
  return OkStatus();
}

StatusOr<double> Planner::Crossover(uint32_t rung, uint32_t segments, uint64_t bytes) const {
  if (rung >= rungs_.size()) {
    return Error(KVT_ERR_OUT_OF_RANGE,
                 absl::StrCat("rung is ", rung, ", expected less than ", rungs_.size()));
  }
  KVT_RETURN_IF_ERROR(CheckTransfer("", bytes, segments));
  MutexLock lock(&mu_);
  const auto pays = [&](double bandwidth) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return TransferTime(Stages(rung, bytes, bandwidth, segments), models_[rung].mean()) <
           TransferTime(Stages(rungs_.size(), bytes, bandwidth, segments), models_.back().mean());
  };
  if (!pays(kRateMin)) return 0.0;
  if (pays(kRateMax)) return std::numeric_limits<double>::infinity();
  double low = kRateMin, high = kRateMax;
  while (high > low * 1.000001) {
    const double middle = std::sqrt(low * high);
    (pays(middle) ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace kvt
