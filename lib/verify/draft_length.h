// How many tokens to draft: the stop rule and the estimates that feed it, for one sequence.
//
// A round of k drafted tokens commits N(k) = 1 + A_1 + ... + A_k tokens on average (A_i: probability that the
// first i drafted tokens are all accepted) and takes T(k) = k draft + load + verify + k verify_row. Because
// A_k never grows, N/T has one peak, and one more token is worth its time iff A_{k+1} / (draft + verify_row)
// >= N(k) / T(k). The decision reads past rounds only. Not thread-safe.
#ifndef KVARTET_LIB_VERIFY_DRAFT_LENGTH_H_
#define KVARTET_LIB_VERIFY_DRAFT_LENGTH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvt {

// Times of a round in any one unit.
struct RoundCosts {
  double draft = 0;       // a drafted token
  double load = 0;        // bringing in the full cache, as far as nothing hides it
  double verify = 0;      // a verification, whatever its rows
  double verify_row = 0;  // and each drafted token in it
};

// The best number of tokens to draft, 0 to conditional.size(). conditional[i] is the probability that token i
// is accepted given that those before it were.
size_t BestDraftLength(const std::vector<double>& conditional, const RoundCosts& costs);

// Committed tokens per unit of time when k tokens are drafted.
double CommitRate(const std::vector<double>& conditional, const RoundCosts& costs, size_t k);

class DraftLength {
 public:
  // `fixed` tokens in every round, or, when it is 0, as many as pay, up to `most`.
  DraftLength(size_t fixed, size_t most);

  // Tokens to draft in the next round; 0 when drafting does not pay at the moment.
  size_t Next() const;

  // What a round with a draft measured, in microseconds. `judged` drafted tokens got a verdict, `accepted` of
  // them a good one.
  void ObserveRound(size_t drafted, size_t judged, size_t accepted, double draft_us, double load_us,
                    double verify_us);
  // What a step on the full cache alone measured.
  void ObserveSingle(double load_us, double verify_us);

  RoundCosts Costs() const;
  const std::vector<double>& conditional() const { return conditional_; }

 private:
  void AddVerify(double rows, double us);
  void Decide();

  const size_t fixed_;
  const size_t most_;
  size_t current_;  // 0: off
  std::vector<double> conditional_;
  size_t depths_seen_ = 0;  // depths with a verdict so far; deeper ones repeat the last

  bool draft_seen_ = false, load_seen_ = false, single_seen_ = false;
  double draft_us_ = 0, load_us_ = 0, single_us_ = 0;
  // Fading sums of a least-squares line: verification time over drafted tokens.
  double w_ = 0, wx_ = 0, wxx_ = 0, wy_ = 0, wxy_ = 0;

  size_t singles_left_ = 0;  // while off: steps until drafting is tried again
  size_t off_for_;           // how long the next time off lasts
};

}  // namespace kvt

#endif  // KVARTET_LIB_VERIFY_DRAFT_LENGTH_H_
