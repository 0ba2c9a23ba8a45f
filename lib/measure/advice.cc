#include "measure/advice.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace kvt {
namespace {

constexpr double kQueueShare = 0.3;    // of all time to first token
constexpr double kMoveShare = 0.2;     // of one way's, spent in encode, transfer and decode
constexpr double kPrefillShare = 0.5;  // of one way's
constexpr double kPays = 0.9;          // a lossy way must save a tenth to be worth its loss
constexpr double kWorth = 0.02;        // and a fiftieth of the raw way's whole time to first token
constexpr double kRatio = 1.1;         // raw bytes over moved bytes from which a way counts as compressed
constexpr double kAcceptance = 0.25;   // accepted of drafted tokens
constexpr uint64_t kEnoughDrafts = 32;

double Moving(const WaySums& w) {
  return w.Mean(KVT_PART_ENCODE) + w.Mean(KVT_PART_TRANSFER) + w.Mean(KVT_PART_DECODE);
}

// From the end of prefill to the first token.
double AfterPrefill(const WaySums& w) {
  return w.MeanTotal() - w.Mean(KVT_PART_QUEUE) - w.Mean(KVT_PART_PREFILL);
}

std::string Time(double ns) {
  if (ns >= 1e9) return absl::StrFormat("%.1f s", ns / 1e9);
  return ns >= 1e7 ? absl::StrFormat("%.0f ms", ns / 1e6) : absl::StrFormat("%.2f ms", ns / 1e6);
}

// Rounded down: only all of it is 100 %.
std::string Percent(double share) { return absl::StrFormat("%.0f %%", std::floor(100 * share + 1e-6)); }

// What the ways are, by label where it is one of the known, else by what they counted.
struct Roles {
  const WaySums* recompute = nullptr;
  const WaySums* raw = nullptr;
  const WaySums* lossy = nullptr;  // first token not verified, if there is such a way
  const WaySums* verified = nullptr;
  const WaySums* hit = nullptr;
};

const WaySums* Roles::*RoleOf(const WaySums& w) {
  if (w.way == "recompute") return &Roles::recompute;
  if (w.way == "raw") return &Roles::raw;
  if (w.way == "lossy") return &Roles::lossy;
  if (w.way == "lossy_verified") return &Roles::verified;
  if (w.way == "cache_hit") return &Roles::hit;
  const uint64_t moved = w.counter(KVT_COUNTER_BYTES_MOVED);
  if (w.counter(KVT_COUNTER_BLOCKS_HIT) > w.counter(KVT_COUNTER_BLOCKS_MISSED)) return &Roles::hit;
  if (moved == 0) return &Roles::recompute;
  if (static_cast<double>(w.counter(KVT_COUNTER_BYTES_RAW)) < kRatio * static_cast<double>(moved))
    return &Roles::raw;
  return w.counter(KVT_COUNTER_TOKENS_DRAFTED) != 0 ? &Roles::verified : &Roles::lossy;
}

Roles Assign(const MeterSums& sums) {
  Roles roles;
  for (const WaySums& w : sums.ways) {
    if (w.requests == 0) continue;
    const WaySums*& slot = roles.*RoleOf(w);
    if (slot == nullptr || AfterPrefill(w) < AfterPrefill(*slot)) slot = &w;
  }
  return roles;
}

// Raw against lossy: empty unless both were measured.
std::string LinkVerdict(const Roles& roles, bool pays) {
  const WaySums* lossy = roles.lossy != nullptr ? roles.lossy : roles.verified;
  if (roles.raw == nullptr || lossy == nullptr) return "";
  const std::string raw_time = Time(AfterPrefill(*roles.raw)), lossy_time = Time(AfterPrefill(*lossy));
  if (!pays) {
    const double saved = AfterPrefill(*roles.raw) - AfterPrefill(*lossy);
    if (saved > 0) {
      return absl::StrFormat(
          "; raw is best on this link (%s from the end of prefill to the first token; the %s that lossy "
          "frames save are not worth their loss)",
          raw_time, Time(saved));
    }
    return absl::StrFormat(
        "; raw is best on this link (%s from the end of prefill to the first token, lossy %s)", raw_time,
        lossy_time);
  }
  std::string text = absl::StrFormat(
      "; compression pays on this link (%s from the end of prefill to the first token, raw %s)", lossy_time,
      raw_time);
  if (roles.verified != nullptr && roles.verified != lossy &&
      kPays * AfterPrefill(*roles.verified) >= AfterPrefill(*lossy)) {
    absl::StrAppend(&text, ", but a verified first token waits for the full frames (",
                    Time(AfterPrefill(*roles.verified)), ")");
  }
  return text;
}

bool Pays(const Roles& roles) {
  const WaySums* lossy = roles.lossy != nullptr ? roles.lossy : roles.verified;
  return roles.raw != nullptr && lossy != nullptr && Moving(*lossy) < Moving(*roles.raw) &&
         AfterPrefill(*lossy) <= kPays * AfterPrefill(*roles.raw) &&
         AfterPrefill(*roles.raw) - AfterPrefill(*lossy) >= kWorth * roles.raw->MeanTotal();
}

// The way whose split is looked at: the plainest that moves the cache, else any. Null when nothing is summed.
const WaySums* Base(const Roles& roles) {
  for (const WaySums* way : {roles.raw, roles.lossy, roles.verified, roles.recompute, roles.hit}) {
    if (way != nullptr && way->MeanTotal() > 0) return way;
  }
  return nullptr;
}

// The axis and its reason, without the verdict on the link.
std::string AxisText(const MeterSums& sums, const Roles& roles, const WaySums& base, bool pays) {
  double queue = 0, total = 0;
  uint64_t drafted = 0, accepted = 0;
  for (const WaySums& w : sums.ways) {
    queue += static_cast<double>(w.times[KVT_PART_QUEUE - 1]);
    total += static_cast<double>(Sum(w.times));
    drafted += w.counter(KVT_COUNTER_TOKENS_DRAFTED);
    accepted += w.counter(KVT_COUNTER_TOKENS_ACCEPTED);
  }
  if (queue >= kQueueShare * total) {
    return absl::StrFormat(
        "Touch location first: %s of the time to first token is waiting in the queue, so spread or deflect "
        "prefill",
        Percent(queue / total));
  }

  const WaySums* lossy = roles.lossy != nullptr ? roles.lossy : roles.verified;
  const WaySums* shipped = pays || roles.raw == nullptr ? lossy : roles.raw;
  if (shipped != nullptr && roles.recompute != nullptr &&
      Moving(*shipped) > roles.recompute->Mean(KVT_PART_PREFILL)) {
    return absl::StrFormat(
        "Touch location first: computing again takes %s, moving the cache %s, so prefill where you decode",
        Time(roles.recompute->Mean(KVT_PART_PREFILL)), Time(Moving(*shipped)));
  }
  if (shipped != nullptr && Moving(base) >= kMoveShare * base.MeanTotal()) {
    const std::string share = absl::StrFormat("moving the cache is %s of the time to first token (way %s)",
                                              Percent(Moving(base) / base.MeanTotal()), base.way);
    if (pays) return absl::StrFormat("Touch size first: %s", share);
    if (lossy == nullptr) return absl::StrFormat("Touch size first: %s, so measure a lossy codec", share);
    if (roles.raw == nullptr)
      return absl::StrFormat("Touch size first: %s, so measure raw frames and other codecs", share);
    return absl::StrFormat("Touch location first: %s and a codec does not shorten it, so use a faster link",
                           share);
  }
  if (roles.verified != nullptr && roles.lossy != nullptr &&
      AfterPrefill(*roles.verified) - AfterPrefill(*roles.lossy) >=
          kMoveShare * roles.verified->MeanTotal()) {
    return absl::StrFormat(
        "Touch verification first: a verified first token takes %s after prefill, an unverified one %s",
        Time(AfterPrefill(*roles.verified)), Time(AfterPrefill(*roles.lossy)));
  }
  if (drafted >= kEnoughDrafts &&
      static_cast<double>(accepted) < kAcceptance * static_cast<double>(drafted)) {
    return absl::StrFormat(
        "Touch verification first: only %s of the drafted tokens are accepted, so use a finer codec or "
        "shorter drafts",
        Percent(static_cast<double>(accepted) / static_cast<double>(drafted)));
  }
  if (base.Mean(KVT_PART_PREFILL) >= kPrefillShare * base.MeanTotal()) {
    std::string text = absl::StrFormat(
        "Touch ownership first: %s of the time to first token is prefill (%s, way %s), so keep KV and route "
        "to it",
        Percent(base.Mean(KVT_PART_PREFILL) / base.MeanTotal()), Time(base.Mean(KVT_PART_PREFILL)), base.way);
    if (roles.hit != nullptr && roles.hit != &base)
      absl::StrAppend(&text, ": a cache hit has its first token after ", Time(roles.hit->MeanTotal()));
    return text;
  }
  return absl::StrFormat(
      "Touch nothing: neither queue, moving nor prefill dominates the %s to first token (way %s)",
      Time(base.MeanTotal()), base.way);
}

}  // namespace

std::string Advise(const MeterSums& sums) {
  const Roles roles = Assign(sums);
  const WaySums* base = Base(roles);
  if (base == nullptr)
    return "Too little data: no request has reached its first token yet, so no axis can be named.";
  const bool pays = Pays(roles);
  return absl::StrCat(AxisText(sums, roles, *base, pays), LinkVerdict(roles, pays), ".");
}

}  // namespace kvt
