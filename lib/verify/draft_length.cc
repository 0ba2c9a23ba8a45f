#include "verify/draft_length.h"

#include <algorithm>
#include <cmath>

namespace kvt {
namespace {

constexpr double kGain = 2.0 / (10 + 1);  // an average over about ten rounds
constexpr double kFade = 1 - kGain;
constexpr double kPrior = 0.8;    // acceptance before the first verdict
constexpr double kFloor = 0.02;   // an estimate never says "never": deeper drafts stay reachable
constexpr size_t kFirstTry = 4;   // tokens in the first adaptive round, and in a trial after time off
constexpr size_t kOffLeast = 16;  // steps without drafting, doubled after each trial that does not pay
constexpr size_t kOffMost = 128;  // stays under KVT_VERIFIER_MAX_DRAFT, so that a trial can always catch up

void Average(double value, bool* seen, double* mean) {
  *mean = *seen ? *mean + kGain * (value - *mean) : value;
  *seen = true;
}

}  // namespace

size_t BestDraftLength(const std::vector<double>& conditional, const RoundCosts& costs) {
  const double step = costs.draft + costs.verify_row;
  double survival = 1, tokens = 1, time = costs.load + costs.verify;
  size_t k = 0;
  while (k < conditional.size()) {
    survival *= conditional[k];
    if (survival * time < tokens * step) break;
    tokens += survival;
    time += step;
    ++k;
  }
  return k;
}

double CommitRate(const std::vector<double>& conditional, const RoundCosts& costs, size_t k) {
  double survival = 1, tokens = 1;
  for (size_t i = 0; i < k; ++i) tokens += survival *= conditional[i];
  return tokens / (static_cast<double>(k) * (costs.draft + costs.verify_row) + costs.load + costs.verify);
}

DraftLength::DraftLength(size_t fixed, size_t most)
    : fixed_(fixed),
      most_(most),
      current_(std::min(kFirstTry, most)),
      conditional_(most, kPrior),
      off_for_(kOffLeast) {}

size_t DraftLength::Next() const {
  if (fixed_ != 0) return fixed_;
  if (current_ != 0) return current_;
  return singles_left_ == 0 ? std::min(kFirstTry, most_) : 0;
}

void DraftLength::ObserveRound(size_t drafted, size_t judged, size_t accepted, double draft_us,
                               double load_us, double verify_us) {
  if (drafted == 0 || fixed_ != 0) return;
  for (size_t i = 0; i < std::min(judged, most_); ++i) {
    // A depth reached for the first time starts from what the depth before it has learnt.
    if (i >= depths_seen_ && i > 0) conditional_[i] = conditional_[i - 1];
    depths_seen_ = std::max(depths_seen_, i + 1);
    conditional_[i] += kGain * ((i < accepted ? 1.0 : 0.0) - conditional_[i]);
    conditional_[i] = std::max(conditional_[i], kFloor);
  }
  for (size_t i = std::max<size_t>(depths_seen_, 1); i < most_; ++i) conditional_[i] = conditional_[i - 1];
  Average(draft_us / static_cast<double>(drafted), &draft_seen_, &draft_us_);
  Average(load_us, &load_seen_, &load_us_);
  AddVerify(static_cast<double>(drafted), verify_us);
  Decide();
}

void DraftLength::ObserveSingle(double load_us, double verify_us) {
  if (fixed_ != 0) return;
  Average(load_us, &load_seen_, &load_us_);
  Average(verify_us, &single_seen_, &single_us_);
  AddVerify(0, verify_us);
  if (singles_left_ > 0) --singles_left_;
}

void DraftLength::AddVerify(double rows, double us) {
  w_ = w_ * kFade + 1;
  wx_ = wx_ * kFade + rows;
  wxx_ = wxx_ * kFade + rows * rows;
  wy_ = wy_ * kFade + us;
  wxy_ = wxy_ * kFade + rows * us;
}

RoundCosts DraftLength::Costs() const {
  RoundCosts costs;
  costs.draft = draft_us_;
  costs.load = load_us_;
  if (w_ == 0) return costs;
  const double mean_x = wx_ / w_, mean_y = wy_ / w_;
  const double spread = wxx_ / w_ - mean_x * mean_x;
  // All rounds of one length do not show a slope: it is taken as none, which makes the next round longer and
  // shows it.
  const double slope = spread > 0.05 ? (wxy_ / w_ - mean_x * mean_y) / spread : 0;
  costs.verify_row = std::clamp(slope, 0.0, mean_x > 0 ? mean_y / mean_x : 0.0);
  costs.verify = std::max(0.0, mean_y - costs.verify_row * mean_x);
  return costs;
}

void DraftLength::Decide() {
  const RoundCosts costs = Costs();
  const size_t best = BestDraftLength(conditional_, costs);
  // Without a measured single step, the verification of no draft stands for it.
  const double alone = costs.load + (single_seen_ ? single_us_ : costs.verify);
  if (best == 0 || CommitRate(conditional_, costs, best) * alone < 1) {
    current_ = 0;
    singles_left_ = off_for_;
    off_for_ = std::min(kOffMost, off_for_ * 2);
    return;
  }
  off_for_ = kOffLeast;
  const size_t distance = best > current_ ? best - current_ : current_ - best;
  if (current_ == 0 || distance > 1) current_ = best;
}

}  // namespace kvt
