#include "kvartet/prefill_ahead.h"

#include <algorithm>
#include <chrono>

#include "kvartet/library.h"

namespace kvt::cli {
namespace {

constexpr int32_t kChunk = 512;
constexpr auto kShowEvery = std::chrono::milliseconds(200);

}  // namespace

PrefillAhead::PrefillAhead(const engine::Engine& engine, std::span<const TextDocument> documents,
                           size_t first, int32_t jobs, int32_t capture_every)
    : documents_(documents), begun_(first), next_(first) {
  size_t longest = 1;
  for (const TextDocument& document : documents) longest = std::max(longest, document.tokens.size());
  engine::SessionOptions options;
  options.context_tokens = static_cast<int32_t>(longest);
  options.batch = kChunk;
  options.threads = 1;
  options.capture_every = capture_every;
  const size_t wanted = std::min(static_cast<size_t>(jobs), documents.size() - first);
  while (sessions_.size() < wanted) sessions_.push_back(Take(engine.NewSession(options), "session"));
  results_.resize(wanted);
  while (begun_ < first + wanted) Begin();
}

PrefillAhead::~PrefillAhead() {
  stop_ = true;
  for (std::future<PrefilledDocument>& result : results_) {
    if (result.valid()) result.wait();
  }
}

void PrefillAhead::Begin() {
  const size_t slot = begun_ % sessions_.size();
  const TextDocument& document = documents_[begun_++];
  results_[slot] = std::async(std::launch::async, [this, slot, &document] {
    engine::Session& session = *sessions_[slot];
    Take(session.Truncate(0), "truncate");
    int32_t before = 0;
    Take(session.Prefill(document.tokens, kChunk,
                         [&](int32_t done, int32_t) {
                           tokens_ += static_cast<size_t>(done - before);
                           before = done;
                           return !stop_;
                         }),
         "prefill");
    engine::KvBlob blob = Take(session.Export(0, session.Length()), "export");
    return PrefilledDocument{std::move(blob), session.TakeCaptured()};
  });
}

PrefilledDocument PrefillAhead::Next(const std::function<void(size_t)>& show) {
  std::future<PrefilledDocument>& result = results_[next_++ % sessions_.size()];
  while (result.wait_for(kShowEvery) != std::future_status::ready) show(tokens_);
  PrefilledDocument document = result.get();
  if (begun_ < documents_.size()) Begin();
  return document;
}

}  // namespace kvt::cli
