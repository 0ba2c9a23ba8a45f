#include "kvartet/quality_measure.h"

#include <algorithm>
#include <cmath>

#include "kvartet/clock.h"
#include "kvartet/quality_importance.h"

namespace kvt::cli {
namespace {

constexpr int32_t kMostRows = 128;  // of logits that one batch gives
// Batches below the engine's threshold give a token the same bits as decoding it alone.
constexpr int32_t kGreedyRows = 48;

double Fastest(int32_t repeat, const std::function<void()>& body) {
  double least = INFINITY;
  for (int32_t i = 0; i < repeat; ++i) {
    const double begin = ThreadMicroseconds();
    body();
    least = std::min(least, ThreadMicroseconds() - begin);
  }
  return least;
}

void Tell(const QualityRun::Show& show, const std::string& text) {
  if (!show(text)) throw Failure("stopped");
}

}  // namespace

Codec MakeMethodCodec(const Model& model, const QualityMethod& method, std::span<const uint8_t> profile) {
  try {
    if (!method.NeedsProfile()) return MakeCodec(model, method.codec);
    return MakeProfileCodec(model, method.codec, profile, method.ratio, method.exempt, method.quantiser);
  } catch (const Failure& failure) {
    throw Failure("method " + method.label + ": " + failure.what(), failure.status);
  }
}

QualityRun::QualityRun(const QualityPlan& plan)
    : plan_(plan),
      importance_(std::any_of(plan.methods.begin(), plan.methods.end(),
                              [](const MeasuredMethod& method) { return method.method.importance; })),
      coder_(plan.settings.sinks, plan.settings.window) {}

std::unique_ptr<engine::Session> QualityRun::NewSession(int32_t capture_every) const {
  engine::SessionOptions options;
  options.context_tokens = plan_.cut.lengths.front() + plan_.cut.continuation;
  options.max_rows = std::min(plan_.cut.continuation, kMostRows);
  options.threads = plan_.settings.threads;
  options.capture_every = capture_every;
  return Take(plan_.engine.NewSession(options), "session");
}

// The rows of a context. The session has the document's longest context, or is empty.
engine::KvBlob QualityRun::Rows(engine::Session& session, const QualityContext& context,
                                const std::string& name, const Show& show) const {
  const std::span<const int32_t> tokens = context.context;
  const auto shared = tokens.first(static_cast<size_t>(context.shared));
  if (session.Length() == 0) {
    Take(session.Prefill(shared, 0,
                         [&](int32_t done, int32_t total) {
                           return show("prefill, " + std::to_string(done) + " of " + std::to_string(total) +
                                       " tokens");
                         }),
         name.c_str());
  }
  Take(session.Truncate(context.shared), "truncate");
  if (shared.size() < tokens.size()) Take(session.Prefill(tokens.subspan(shared.size()), 0), name.c_str());
  return Take(session.Export(0, session.Length()), "export");
}

// `text` keeps what was captured of the document's longest context, which comes first.
QualityRun::Prefilled QualityRun::Prefill(engine::Session& session, const QualityContext& context,
                                          const std::string& name, engine::Captured* text,
                                          const Show& show) const {
  Prefilled result = {Rows(session, context, name, show), {}, 0};
  if (!importance_) return result;
  engine::Captured captured = JoinCaptured(*text, context.shared, session.TakeCaptured());
  if (text->rows() == 0) *text = captured;
  const double begin = ThreadMicroseconds();
  result.importance = ImportanceOf(plan_.model, result.rows, captured);
  result.importance_us = ThreadMicroseconds() - begin;
  return result;
}

QualityRun::Output QualityRun::Force(engine::Session& session, std::span<const int32_t> tokens,
                                     bool keep_logits) const {
  Output output;
  const size_t rows = keep_logits ? kMostRows : kGreedyRows;
  if (keep_logits) output.logits.reserve(tokens.size() * static_cast<size_t>(plan_.engine.geometry().vocab));
  for (size_t begin = 0; begin < tokens.size(); begin += rows) {
    const auto part = tokens.subspan(begin, std::min(rows, tokens.size() - begin));
    const std::vector<engine::Choice> choices = Take(session.DecodeBatch(part), "continuation");
    for (size_t row = 0; row < part.size(); ++row) {
      output.choices.push_back(choices[row].token);
      if (!keep_logits) continue;
      const std::span<const float> logits = session.Logits(static_cast<int32_t>(row));
      output.logits.insert(output.logits.end(), logits.begin(), logits.end());
    }
  }
  return output;
}

// `first`, and what the sequence makes of it token by token; `choice` is the first of that.
std::vector<int32_t> QualityRun::Greedy(engine::Session& session, int32_t first, int32_t choice) const {
  std::vector<int32_t> greedy = {first, choice};
  Take(session.DecodeOne(first), "greedy output");
  while (greedy.size() <= static_cast<size_t>(plan_.cut.continuation))
    greedy.push_back(Take(session.DecodeOne(greedy.back()), "greedy output").token);
  return greedy;
}

// The tokens that the sequence would put out as the full cache does, up to the first other one: as long as
// they are equal, so is what they follow, and one pass over the full cache's output tells.
int32_t QualityRun::EqualPrefix(engine::Session& session, std::span<const int32_t> greedy) const {
  const std::vector<int32_t> choices = Force(session, greedy.first(greedy.size() - 1), false).choices;
  const auto end = std::mismatch(choices.begin(), choices.end(), greedy.begin() + 1).first;
  return static_cast<int32_t>(end - choices.begin());
}

engine::KvBlob QualityRun::Code(const MeasuredMethod& method, const Prefilled& prefilled,
                                MethodSample* sample) {
  const QualitySettings& settings = plan_.settings;
  const engine::KvGeometry& geometry = plan_.engine.geometry().kv;
  std::span<const int8_t> importance;
  if (method.method.importance) importance = prefilled.importance;
  std::span<const uint8_t> frame;
  sample->encode_us =
      Fastest(settings.repeat, [&] { frame = coder_.Encode(method.codec, prefilled.rows, importance); });
  const int32_t tokens = prefilled.rows.tokens();
  sample->sizes.raw = static_cast<uint64_t>(tokens) * geometry.token_bytes();
  if (method.method.KeepsExemptRaw())
    sample->sizes.exempt = (uint64_t{settings.sinks} + settings.window) * geometry.token_bytes();
  sample->sizes.frame = frame.size();
  engine::KvBlob decoded = Take(engine::KvBlob::Create(geometry, 0, tokens), "rows");
  sample->decode_us = Fastest(settings.repeat, [&] { DecodeContext(method.codec, frame, decoded); });
  return decoded;
}

void QualityRun::Score(const Output& full, const Output& other, std::span<const int32_t> tokens,
                       const std::string& what, DocumentSample* document, MethodSample* sample) const {
  const auto vocab = static_cast<size_t>(plan_.engine.geometry().vocab);
  const auto row = [&](const Output& output, size_t i) {
    return std::span<const float>(output.logits).subspan(i * vocab, vocab);
  };
  document->full_likelihood = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    sample->kl += KlDivergence(row(full, i), row(other, i));
    sample->same_choice += full.choices[i] == other.choices[i] ? 1 : 0;
    if (i + 1 == tokens.size()) break;
    document->full_likelihood += NegativeLogLikelihood(row(full, i), tokens[i + 1]);
    sample->likelihood += NegativeLogLikelihood(row(other, i), tokens[i + 1]);
  }
  sample->kl /= static_cast<double>(tokens.size());
  sample->same_choice /= static_cast<double>(tokens.size());
  if (!std::isfinite(sample->kl)) throw Failure(what + ": the engine's logits are not finite");
}

DocumentSample QualityRun::MeasureContext(const QualityContext& context, const Prefilled& prefilled,
                                          engine::Session& session, const std::string& name,
                                          const Show& show) {
  const engine::KvBlob& blob = prefilled.rows;
  const std::span<const int32_t> continuation = context.continuation;
  const auto begin = [&](const engine::KvBlob& rows) {
    Take(session.Truncate(0), "truncate");
    Take(session.Commit(rows), "commit");
  };
  begin(blob);
  const Output full = Force(session, continuation, true);
  std::vector<int32_t> greedy;
  if (plan_.settings.full) {
    Tell(show, "greedy output");
    Take(session.Truncate(blob.tokens()), "truncate");
    greedy = Greedy(session, continuation[0], full.choices[0]);
  }
  DocumentSample result;
  result.name = name;
  result.context = blob.tokens();
  result.importance_us = prefilled.importance_us;
  for (const MeasuredMethod& method : plan_.methods) {
    Tell(show, method.method.label);
    MethodSample sample;
    begin(Code(method, prefilled, &sample));
    Score(full, Force(session, continuation, true), continuation, name + ", " + method.method.label, &result,
          &sample);
    if (!greedy.empty()) {
      Take(session.Truncate(blob.tokens()), "truncate");
      sample.equal_prefix = EqualPrefix(session, greedy);
    }
    result.methods.push_back(sample);
  }
  return result;
}

std::vector<DocumentSample> QualityRun::Measure(const QualityDocument& document, const Show& show) {
  const std::unique_ptr<engine::Session> prefill = NewSession(importance_ ? kImportanceEvery : 0);
  const std::unique_ptr<engine::Session> session = NewSession(0);
  engine::Captured text;
  std::vector<DocumentSample> samples;
  for (const int32_t length : plan_.cut.lengths) {
    if (!HasContext(document, length, plan_.cut)) continue;
    const QualityContext context = CutContext(document, length, plan_.cut);
    const Prefilled prefilled = Prefill(*prefill, context, document.name, &text, show);
    samples.push_back(MeasureContext(context, prefilled, *session, document.name, show));
    samples.back().copy = document.copy;
  }
  return samples;
}

}  // namespace kvt::cli
