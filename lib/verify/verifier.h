// Verifier: the passive state machine of one sequence. It asks for an action, is told what came of it, and
// never commits a token that the full cache did not give.
//
//   DRAFT -> [PREFETCH] -> VERIFY -> [RECHECK] -> ROLLBACK -> COMMIT -> DRAFT ... DONE
//            [PREFETCH] -> FALLBACK -----------> ROLLBACK -> COMMIT
//
// Invariants, checked at the end of each round: the full cache holds all committed tokens but the last; the
// draft cache holds a prefix of the same; a round commits at least one token. Thread-safe: calls on one
// verifier are made one after another.
#ifndef KVARTET_LIB_VERIFY_VERIFIER_H_
#define KVARTET_LIB_VERIFY_VERIFIER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/handles.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kvartet/verifier.h"
#include "verify/draft_length.h"

namespace kvt {

kvt_verifier_options_t DefaultVerifierOptions();

class Verifier {
 public:
  // KVT_ERR_INVALID_ARGUMENT names the field and the value.
  static StatusOr<std::shared_ptr<Verifier>> Create(const kvt_verifier_options_t& options);

  kvt_action_t Next() const ABSL_LOCKS_EXCLUDED(mu_);
  Status Drafted(const int32_t* tokens, size_t count, uint64_t us) ABSL_LOCKS_EXCLUDED(mu_);
  Status Loaded(kvt_status_t status, uint64_t us) ABSL_LOCKS_EXCLUDED(mu_);
  Status Verified(const int32_t* tokens, const float* gaps, size_t count, uint64_t us)
      ABSL_LOCKS_EXCLUDED(mu_);
  Status Rechecked(int32_t token, uint64_t us) ABSL_LOCKS_EXCLUDED(mu_);
  Status RolledBack() ABSL_LOCKS_EXCLUDED(mu_);
  Status Committed() ABSL_LOCKS_EXCLUDED(mu_);
  Status Cancel() ABSL_LOCKS_EXCLUDED(mu_);
  kvt_verifier_stats_t Stats() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // What a round has come to so far.
  struct Round {
    uint32_t asked = 0;  // tokens to draft; 0: a step on the full cache alone
    int32_t reason = KVT_REASON_NONE;
    std::vector<int32_t> draft;  // what is verified
    uint64_t draft_rows = 0;     // tokens that the draft cache holds after the draft
    size_t accepted = 0, judged = 0;
    size_t recheck_row = 0;
    std::vector<int32_t> outcome;  // tokens to commit
    uint64_t draft_keep = 0;       // lengths after the rollback
    uint64_t full_keep = 0;
    double draft_us = 0, load_us = 0, verify_us = 0;
  };

  explicit Verifier(const kvt_verifier_options_t& options);

  Status Expect(int32_t state, const char* reported) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckToken(int32_t token, absl::string_view field, size_t index) const;
  void Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // VERIFY or FALLBACK, after PREFETCH when the full cache is not there.
  void GoVerify() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes one token of the full cache for row `row`; true when the round is decided by it.
  bool Judge(size_t row, int32_t token) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckInvariants() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint32_t FullRows() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const kvt_verifier_options_t options_;
  const absl::flat_hash_set<int32_t> eos_;

  mutable Mutex mu_;
  DraftLength length_ ABSL_GUARDED_BY(mu_);
  int32_t state_ ABSL_GUARDED_BY(mu_) = KVT_ACTION_DRAFT;  // KVT_ACTION_*: the action that is due
  Round round_ ABSL_GUARDED_BY(mu_);
  bool full_there_ ABSL_GUARDED_BY(mu_);
  bool load_failed_ ABSL_GUARDED_BY(mu_) = false;  // only ever true while PREFETCH is due
  uint64_t full_rows_ ABSL_GUARDED_BY(mu_);        // tokens that the caches hold between rounds
  uint64_t draft_rows_ ABSL_GUARDED_BY(mu_);
  // The committed tokens that the draft cache lacks; the pending one comes last. Once there are more than an
  // action can carry, drafting has ended for good.
  std::vector<int32_t> missing_ ABSL_GUARDED_BY(mu_);
  kvt_verifier_stats_t stats_ ABSL_GUARDED_BY(mu_) = {};
  uint64_t judged_ ABSL_GUARDED_BY(mu_) = 0;
};

template <>
struct HandleTraits<Verifier> {
  static constexpr HandleType kType = HandleType::kVerifier;
};

}  // namespace kvt

#endif  // KVARTET_LIB_VERIFY_VERIFIER_H_
