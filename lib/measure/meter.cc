#include "measure/meter.h"

#include <algorithm>
#include <chrono>

namespace kvt {
namespace {

constexpr size_t kMostWays = 256;
constexpr size_t kMostOpen = size_t{1} << 20;

uint64_t SteadyNow() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// Well-formed UTF-8: no stray or missing continuation, no overlong form, no surrogate, nothing above
// U+10FFFF.
bool IsUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    if (lead < 0xC2 || lead > 0xF4) return false;
    const size_t more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    if (text.size() - i < more) return false;
    unsigned low = 0x80, high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    for (size_t end = i + more; i < end; low = 0x80, high = 0xBF) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if (next < low || next > high) return false;
    }
  }
  return true;
}

}  // namespace

double WaySums::Mean(int32_t part) const {
  return requests == 0 ? 0 : static_cast<double>(times[part - 1]) / static_cast<double>(requests);
}

double WaySums::MeanTotal() const {
  return requests == 0 ? 0 : static_cast<double>(Sum(times)) / static_cast<double>(requests);
}

Meter::Meter(std::shared_ptr<Runtime> runtime, Clock clock)
    : runtime_(runtime == nullptr ? nullptr : std::make_unique<RuntimeChild>(std::move(runtime))),
      clock_(clock == nullptr ? Clock(SteadyNow) : std::move(clock)) {}

StatusOr<uint64_t> Meter::Begin(absl::string_view way) {
  if (way.empty() || way.size() > 64)
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("way_len is ", way.size(), ", a label has 1 to 64 bytes"));
  if (!IsUtf8(way)) return Error(KVT_ERR_INVALID_ARGUMENT, "way is not UTF-8");
  const uint64_t now = clock_();
  MutexLock lock(&mu_);
  if (open_.size() >= kMostOpen)
    return Error(KVT_ERR_LIMIT, absl::StrCat("open requests are ", open_.size(), ", the most"));
  const auto known = std::find_if(sums_.ways.begin(), sums_.ways.end(),
                                  [&](const WaySums& sums) { return sums.way == way; });
  const size_t index = static_cast<size_t>(known - sums_.ways.begin());
  if (known == sums_.ways.end()) {
    if (index == kMostWays)
      return Error(KVT_ERR_LIMIT, absl::StrCat("way '", way, "' is one more than the most, ", kMostWays));
    sums_.ways.push_back(WaySums{std::string(way)});
  }
  const uint64_t id = next_request_++;
  open_.emplace(id, Request{index, now, RequestParts(now)});
  return id;
}

StatusOr<Meter::Request*> Meter::Find(uint64_t request) {
  const auto it = open_.find(request);
  if (it == open_.end())
    return Error(KVT_ERR_NOT_FOUND, absl::StrCat("request ", request, " is not open on this meter"));
  return &it->second;
}

Status Meter::Part(uint64_t request, int32_t part) {
  const uint64_t now = clock_();
  MutexLock lock(&mu_);
  KVT_ASSIGN_OR_RETURN(Request * found, Find(request));
  return found->parts.Mark(part, now);
}

Status Meter::Attribute(uint64_t request, int32_t from, int32_t to, uint64_t ns) {
  const uint64_t now = clock_();
  MutexLock lock(&mu_);
  KVT_ASSIGN_OR_RETURN(Request * found, Find(request));
  return found->parts.Attribute(from, to, ns, now);
}

Status Meter::FirstToken(uint64_t request) {
  const uint64_t now = clock_();
  MutexLock lock(&mu_);
  KVT_ASSIGN_OR_RETURN(Request * found, Find(request));
  return found->parts.FirstToken(now);
}

Status Meter::Count(uint64_t request, int32_t counter, uint64_t amount) {
  KVT_RETURN_IF_ERROR(CheckCounter(counter));
  MutexLock lock(&mu_);
  Counters* counters = &sums_.counters;
  if (request != 0) {
    KVT_ASSIGN_OR_RETURN(Request * found, Find(request));
    counters = &found->counters;
  }
  Add(amount, &(*counters)[counter - 1]);
  return OkStatus();
}

Status Meter::End(uint64_t request) {
  const uint64_t now = clock_();
  MutexLock lock(&mu_);
  KVT_ASSIGN_OR_RETURN(Request * found, Find(request));
  WaySums& way = sums_.ways[found->way];
  if (found->parts.has_first_token()) {
    const PartTimes& times = found->parts.times();
    const uint64_t duration = now > found->begin_ns ? now - found->begin_ns : 0;
    if (way.spread == nullptr) way.spread = std::make_shared<WayTimes>();
    ++way.requests;
    for (int32_t i = 0; i < kParts; ++i) {
      way.times[i] += times[i];
      way.spread->parts[i].Add(times[i]);
    }
    way.spread->total.Add(Sum(times));
    way.duration_ns += duration;
    way.spread->duration.Add(duration);
  } else {
    ++way.unfinished;
  }
  for (int32_t i = 0; i < kCounters; ++i) Add(found->counters[i], &way.counters[i]);
  open_.erase(request);
  return OkStatus();
}

MeterSums Meter::Sums() const {
  MutexLock lock(&mu_);
  MeterSums sums = sums_;
  if (runtime_ != nullptr) sums.operations = (*runtime_)->operation_times();
  return sums;
}

}  // namespace kvt
