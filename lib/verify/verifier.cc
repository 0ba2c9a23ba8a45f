#include "verify/verifier.h"

#include <algorithm>
#include <cmath>

namespace kvt {
namespace {

// So that no length computed from it can wrap.
constexpr uint64_t kMostTokens = uint64_t{1} << 62;

const char* ActionName(int32_t kind) {
  switch (kind) {
    case KVT_ACTION_DRAFT:
      return "DRAFT";
    case KVT_ACTION_PREFETCH:
      return "PREFETCH";
    case KVT_ACTION_VERIFY:
      return "VERIFY";
    case KVT_ACTION_RECHECK:
      return "RECHECK";
    case KVT_ACTION_ROLLBACK:
      return "ROLLBACK";
    case KVT_ACTION_COMMIT:
      return "COMMIT";
    case KVT_ACTION_FALLBACK:
      return "FALLBACK";
    default:
      return "DONE";
  }
}

template <typename T>
Status Invalid(absl::string_view field, T value, absl::string_view allowed) {
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat("kvt_verifier_options.", field, " is ", value, ", allowed is ", allowed));
}

bool IsToken(int32_t token, uint32_t vocabulary) {
  return token >= 0 && static_cast<uint32_t>(token) < vocabulary;
}

Status CheckOptions(const kvt_verifier_options_t& o) {
  if (o.draft_length > KVT_VERIFIER_MAX_DRAFT) return Invalid("draft_length", o.draft_length, "0 to 256");
  if (o.draft_max < 1 || o.draft_max > KVT_VERIFIER_MAX_DRAFT)
    return Invalid("draft_max", o.draft_max, "1 to 256");
  if (o.width > KVT_VERIFIER_MAX_DRAFT + 1) return Invalid("width", o.width, "0 to 257");
  if (o.fidelity < KVT_FIDELITY_N || o.fidelity > KVT_FIDELITY_C)
    return Invalid("fidelity", o.fidelity, "KVT_FIDELITY_N, A, B or C");
  const uint32_t longest = o.draft_length != 0 ? o.draft_length : o.draft_max;
  if (o.fidelity == KVT_FIDELITY_A && o.width < longest + 1)
    return Invalid("width", o.width,
                   absl::StrCat("at least the longest draft and one, ", longest + 1, ", at level A"));
  if (o.fidelity == KVT_FIDELITY_B && !(std::isfinite(o.margin) && o.margin > 0))
    return Invalid("margin", o.margin, "finite and above 0 at level B");
  if (o.vocabulary < 1 || o.vocabulary > uint32_t{1} << 31)
    return Invalid("vocabulary", o.vocabulary, "1 to 2^31");
  if (!IsToken(o.first_token, o.vocabulary))
    return Invalid("first_token", o.first_token, absl::StrCat("0 to ", o.vocabulary - 1));
  if (o.prompt_tokens > kMostTokens) return Invalid("prompt_tokens", o.prompt_tokens, "0 to 2^62");
  if (o.max_tokens < 1 || o.max_tokens > kMostTokens) return Invalid("max_tokens", o.max_tokens, "1 to 2^62");
  if (o.eos_count > 4096) return Invalid("eos_count", o.eos_count, "0 to 4096");
  if (o.eos_count != 0 && o.eos == nullptr)
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_verifier_options.eos is NULL, eos_count ", o.eos_count));
  for (size_t i = 0; i < o.eos_count; ++i) {
    if (!IsToken(o.eos[i], o.vocabulary))
      return Invalid(absl::StrCat("eos[", i, "]"), o.eos[i], absl::StrCat("0 to ", o.vocabulary - 1));
  }
  if (o.full_ready > 1) return Invalid("full_ready", int{o.full_ready}, "0 or 1");
  if (o.full_reload > 1) return Invalid("full_reload", int{o.full_reload}, "0 or 1");
  for (const uint8_t byte : o.reserved) {
    if (byte != 0) return Invalid("reserved", int{byte}, "0");
  }
  return OkStatus();
}

}  // namespace

kvt_verifier_options_t DefaultVerifierOptions() {
  kvt_verifier_options_t options = {};
  options.struct_size = sizeof options;
  options.draft_length = 8;
  options.draft_max = 32;
  return options;
}

StatusOr<std::shared_ptr<Verifier>> Verifier::Create(const kvt_verifier_options_t& options) {
  KVT_RETURN_IF_ERROR(CheckOptions(options));
  return std::shared_ptr<Verifier>(new Verifier(options));
}

Verifier::Verifier(const kvt_verifier_options_t& options)
    : options_(options),
      eos_(options.eos, options.eos + options.eos_count),
      length_(options.draft_length, options.draft_max),
      full_there_(options.full_ready != 0),
      full_rows_(options.prompt_tokens),
      draft_rows_(options.prompt_tokens),
      missing_{options.first_token} {
  MutexLock lock(&mu_);
  stats_.committed = 1;
  Begin();
}

void Verifier::Begin() {
  round_ = Round();
  round_.full_keep = full_rows_;
  round_.draft_keep = draft_rows_;
  const uint64_t left = options_.max_tokens - stats_.committed;
  if (eos_.contains(missing_.back()) || left == 0) {
    round_.reason = left == 0 && !eos_.contains(missing_.back()) ? KVT_REASON_LENGTH : KVT_REASON_EOS;
    state_ = KVT_ACTION_DONE;
    return;
  }
  const size_t wanted = length_.Next();
  round_.asked = static_cast<uint32_t>(std::min<uint64_t>(wanted, left - 1));
  if (round_.asked != 0 && missing_.size() <= KVT_VERIFIER_MAX_DRAFT + 1) {
    state_ = KVT_ACTION_DRAFT;
    return;
  }
  round_.reason = left == 1 ? KVT_REASON_LENGTH : wanted == 0 ? KVT_REASON_UNPROFITABLE : KVT_REASON_NO_DRAFT;
  round_.asked = 0;
  GoVerify();
}

void Verifier::GoVerify() {
  const bool alone = round_.draft.empty();
  state_ = !full_there_ ? KVT_ACTION_PREFETCH : alone ? KVT_ACTION_FALLBACK : KVT_ACTION_VERIFY;
}

uint32_t Verifier::FullRows() const {
  const uint32_t rows = static_cast<uint32_t>(round_.draft.size()) + 1;
  // Only level A needs a step on the full cache alone to have the width of the others.
  const bool padded = !round_.draft.empty() || options_.fidelity == KVT_FIDELITY_A;
  return padded ? std::max(rows, options_.width) : rows;
}

kvt_action_t Verifier::Next() const {
  MutexLock lock(&mu_);
  kvt_action_t action = {};
  action.struct_size = sizeof action;
  action.kind = state_;
  action.reason = round_.reason;
  action.pending = missing_.back();
  action.draft_length = draft_rows_;
  action.full_length = full_rows_;
  switch (state_) {
    case KVT_ACTION_DRAFT:
      action.n = round_.asked;
      action.width = static_cast<uint32_t>(missing_.size());
      std::copy(missing_.begin(), missing_.end(), action.tokens);
      break;
    case KVT_ACTION_PREFETCH:
      if (load_failed_) action.reason = KVT_REASON_FULL_LATE;
      break;
    case KVT_ACTION_VERIFY:
    case KVT_ACTION_FALLBACK:
    case KVT_ACTION_RECHECK:
      action.n = static_cast<uint32_t>(round_.draft.size());
      action.width = FullRows();
      action.tokens[0] = missing_.back();
      std::copy(round_.draft.begin(), round_.draft.end(), action.tokens + 1);
      if (state_ == KVT_ACTION_RECHECK) {
        action.n = static_cast<uint32_t>(round_.recheck_row);
        action.width = 1;
        action.full_length = full_rows_ + round_.recheck_row;
      }
      break;
    case KVT_ACTION_ROLLBACK:
      action.draft_length = round_.draft_keep;
      action.full_length = round_.full_keep;
      break;
    case KVT_ACTION_COMMIT:
      action.draft_length = round_.draft_keep;
      action.full_length = round_.full_keep;
      action.n = static_cast<uint32_t>(round_.outcome.size());
      std::copy(round_.outcome.begin(), round_.outcome.end(), action.tokens);
      break;
    default:
      break;
  }
  return action;
}

Status Verifier::Expect(int32_t state, const char* reported) const {
  if (state_ == state) return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat("reported ", reported, ", but the action due is ", ActionName(state_)));
}

Status Verifier::CheckToken(int32_t token, absl::string_view field, size_t index) const {
  if (IsToken(token, options_.vocabulary)) return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat(field, "[", index, "] is ", token, ", ids are 0 to ", options_.vocabulary - 1));
}

Status Verifier::Drafted(const int32_t* tokens, size_t count, uint64_t us) {
  MutexLock lock(&mu_);
  KVT_RETURN_IF_ERROR(Expect(KVT_ACTION_DRAFT, "a draft"));
  if (count > round_.asked) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("count is ", count, ", asked for were ", round_.asked, " drafted tokens"));
  }
  if (count != 0 && tokens == nullptr)
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("tokens is NULL, count is ", count));
  for (size_t i = 0; i < count; ++i) KVT_RETURN_IF_ERROR(CheckToken(tokens[i], "tokens", i));

  stats_.drafted += count;
  if (count == 0) {
    round_.reason = KVT_REASON_NO_DRAFT;
  } else {
    // Nothing can follow an end of sequence, so what was drafted after one is not worth verifying.
    const int32_t* end = std::find_if(tokens, tokens + count, [&](int32_t t) { return eos_.contains(t); });
    round_.draft.assign(tokens, end == tokens + count ? end : end + 1);
    round_.draft_us =
        static_cast<double>(us) * static_cast<double>(round_.draft.size()) / static_cast<double>(count);
    // The last drafted token itself was not decoded.
    round_.draft_rows = draft_rows_ + missing_.size() + count - 1;
  }
  GoVerify();
  return OkStatus();
}

Status Verifier::Loaded(kvt_status_t status, uint64_t us) {
  MutexLock lock(&mu_);
  KVT_RETURN_IF_ERROR(Expect(KVT_ACTION_PREFETCH, "a load"));
  if (status > 0)
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("status is ", status, ", a status is 0 or negative"));
  round_.load_us += static_cast<double>(us);
  load_failed_ = status != KVT_OK;
  if (load_failed_) return OkStatus();
  full_there_ = true;
  GoVerify();
  return OkStatus();
}

bool Verifier::Judge(size_t row, int32_t token) {
  round_.outcome.push_back(token);
  if (row < round_.draft.size()) {
    ++round_.judged;
    if (token == round_.draft[row]) ++round_.accepted;
  }
  return row >= round_.draft.size() || token != round_.draft[row] || eos_.contains(token);
}

Status Verifier::Verified(const int32_t* tokens, const float* gaps, size_t count, uint64_t us) {
  MutexLock lock(&mu_);
  const bool alone = state_ == KVT_ACTION_FALLBACK;
  if (!alone) KVT_RETURN_IF_ERROR(Expect(KVT_ACTION_VERIFY, "a verification"));
  if (count != round_.draft.size() + 1) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("count is ", count, ", expected are ", round_.draft.size() + 1, " rows"));
  }
  if (tokens == nullptr) return Error(KVT_ERR_INVALID_ARGUMENT, "tokens is NULL");
  const bool guarded = options_.fidelity == KVT_FIDELITY_B;
  if (guarded && gaps == nullptr) return Error(KVT_ERR_INVALID_ARGUMENT, "gaps is NULL at level B");

  // Decided on a copy: a refused report leaves the round as it was.
  const Round before = round_;
  bool decided = false, recheck = false;
  for (size_t row = 0; row < count && !decided && !recheck; ++row) {
    Status status = CheckToken(tokens[row], "tokens", row);
    if (gaps != nullptr && std::isnan(gaps[row])) {
      ++stats_.nonfinite;
      status = Error(KVT_ERR_CORRUPT,
                     absl::StrCat("gaps[", row,
                                  "] is not a number: the full cache's logits of that row are not finite"));
    } else if (gaps != nullptr && gaps[row] < 0) {
      status = Error(KVT_ERR_INVALID_ARGUMENT,
                     absl::StrCat("gaps[", row, "] is ", gaps[row], ", a top-two gap is at least 0"));
    }
    if (!status.ok()) {
      round_ = before;
      return status;
    }
    // A step on its own was not decoded in a batch: there is nothing to decide again.
    recheck = guarded && !alone && gaps[row] <= options_.margin;
    if (recheck) {
      round_.recheck_row = row;
    } else {
      decided = Judge(row, tokens[row]);
    }
  }
  round_.verify_us = static_cast<double>(us);
  if (recheck) {
    state_ = KVT_ACTION_RECHECK;
  } else {
    Settle();
  }
  return OkStatus();
}

Status Verifier::Rechecked(int32_t token, uint64_t us) {
  MutexLock lock(&mu_);
  KVT_RETURN_IF_ERROR(Expect(KVT_ACTION_RECHECK, "a recheck"));
  if (!IsToken(token, options_.vocabulary)) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("token is ", token, ", ids are 0 to ", options_.vocabulary - 1));
  }
  ++stats_.rechecks;
  round_.verify_us += static_cast<double>(us);
  // The rows after it went with the truncation, so the round ends here whatever the token is.
  Judge(round_.recheck_row, token);
  Settle();
  return OkStatus();
}

void Verifier::Settle() {
  const uint64_t made = round_.outcome.size();
  round_.full_keep = full_rows_ + made;
  // Of the draft, what is now committed; never the new pending token.
  round_.draft_keep = round_.draft.empty() ? draft_rows_ : std::min(round_.draft_rows, round_.full_keep);
  state_ = KVT_ACTION_ROLLBACK;
}

Status Verifier::RolledBack() {
  MutexLock lock(&mu_);
  KVT_RETURN_IF_ERROR(Expect(KVT_ACTION_ROLLBACK, "a rollback"));
  state_ = KVT_ACTION_COMMIT;
  return OkStatus();
}

Status Verifier::Committed() {
  MutexLock lock(&mu_);
  KVT_RETURN_IF_ERROR(Expect(KVT_ACTION_COMMIT, "a commit"));
  if (round_.outcome.empty()) return Error(KVT_ERR_INTERNAL, "verifier: a round committed nothing");

  missing_.insert(missing_.end(), round_.outcome.begin(), round_.outcome.end());
  missing_.erase(missing_.begin(),
                 missing_.begin() + static_cast<ptrdiff_t>(round_.draft_keep - draft_rows_));
  draft_rows_ = round_.draft_keep;
  full_rows_ = round_.full_keep;
  stats_.committed += round_.outcome.size();
  if (round_.draft.empty()) {
    ++stats_.fallbacks;
    length_.ObserveSingle(round_.load_us, round_.verify_us);
  } else {
    ++stats_.rounds;
    stats_.accepted += round_.accepted;
    judged_ += round_.judged;
    length_.ObserveRound(round_.draft.size(), round_.judged, round_.accepted, round_.draft_us, round_.load_us,
                         round_.verify_us);
  }
  KVT_RETURN_IF_ERROR(CheckInvariants());
  if (options_.full_reload != 0) full_there_ = false;
  Begin();
  return OkStatus();
}

Status Verifier::CheckInvariants() const {
  const uint64_t total = options_.prompt_tokens + stats_.committed;
  if (full_rows_ == total - 1 && draft_rows_ < total && !missing_.empty() &&
      draft_rows_ + missing_.size() == total)
    return OkStatus();
  return Error(KVT_ERR_INTERNAL,
               absl::StrCat("verifier: ", total, " tokens are committed, the full cache holds ", full_rows_,
                            ", the draft cache ", draft_rows_, " and lacks ", missing_.size()));
}

Status Verifier::Cancel() {
  MutexLock lock(&mu_);
  if (state_ == KVT_ACTION_DONE) return OkStatus();
  round_.reason = load_failed_ ? KVT_REASON_FULL_LATE : KVT_REASON_CANCELLED;
  state_ = KVT_ACTION_DONE;
  return OkStatus();
}

kvt_verifier_stats_t Verifier::Stats() const {
  MutexLock lock(&mu_);
  kvt_verifier_stats_t stats = stats_;
  stats.struct_size = sizeof stats;
  if (judged_ != 0) stats.acceptance = static_cast<double>(stats.accepted) / static_cast<double>(judged_);
  if (stats.rounds != 0)
    stats.mean_accepted = static_cast<double>(stats.accepted) / static_cast<double>(stats.rounds);
  return stats;
}

}  // namespace kvt
