#include "kvartet/forced_output.h"

#include <algorithm>

#include "kvartet/library.h"
#include "kvartet/quality_metrics.h"

namespace kvt::cli {
namespace {

constexpr size_t kMostContext = 1024, kContinuation = 96;

std::unique_ptr<engine::Session> NewSession(const engine::Engine& engine, const ProbeDocument& document) {
  engine::SessionOptions options;
  options.context_tokens = static_cast<int32_t>(document.context.size() + document.continuation.size());
  options.max_rows = static_cast<int32_t>(document.continuation.size());
  return Take(engine.NewSession(options), "session");
}

}  // namespace

ProbeDocument CutProbe(std::span<const int32_t> tokens, const engine::KvBlob& rows) {
  const size_t continuation = std::min(kContinuation, tokens.size() / 4);
  const size_t context = std::min(kMostContext, tokens.size() - continuation);
  const std::span<const int32_t> first = tokens.first(context), last = tokens.subspan(context, continuation);
  return {{first.begin(), first.end()},
          {last.begin(), last.end()},
          Take(rows.Slice(0, static_cast<int32_t>(context)), "rows")};
}

ForcedOutput::ForcedOutput(const engine::Engine& engine, const ProbeDocument& document)
    : document_(document),
      vocab_(static_cast<size_t>(engine.geometry().vocab)),
      session_(NewSession(engine, document)) {}

std::vector<float> ForcedOutput::Logits(const engine::KvBlob& rows) {
  Take(session_->Truncate(0), "truncate");
  Take(session_->Commit(rows), "commit");
  Take(session_->DecodeBatch(document_.continuation), "continuation");
  std::vector<float> logits;
  logits.reserve(document_.continuation.size() * vocab_);
  for (size_t row = 0; row < document_.continuation.size(); ++row) {
    const std::span<const float> own = session_->Logits(static_cast<int32_t>(row));
    logits.insert(logits.end(), own.begin(), own.end());
  }
  return logits;
}

double ForcedOutput::Divergence(const std::vector<float>& full, const std::vector<float>& other) const {
  double sum = 0;
  for (size_t at = 0; at < full.size(); at += vocab_)
    sum += KlDivergence(std::span(full).subspan(at, vocab_), std::span(other).subspan(at, vocab_));
  return sum * static_cast<double>(vocab_) / static_cast<double>(full.size());
}

}  // namespace kvt::cli
