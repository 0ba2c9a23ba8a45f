#include "kvartet/quality_measure.h"

#include <time.h>

#include <algorithm>
#include <cmath>

namespace kvt::cli {
namespace {

constexpr int32_t kMostRows = 128;  // of logits that one batch gives

// Microseconds of processor time that this thread has had: what else runs on the machine does not count.
double ThreadMicroseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double Fastest(int32_t repeat, const std::function<void()>& body) {
  double least = INFINITY;
  for (int32_t i = 0; i < repeat; ++i) {
    const double begin = ThreadMicroseconds();
    body();
    least = std::min(least, ThreadMicroseconds() - begin);
  }
  return least;
}

}  // namespace

Codec MakeMethodCodec(const Model& model, const QualityMethod& method, std::span<const uint8_t> profile) {
  try {
    return method.NeedsProfile() ? MakeTransform(model, profile, method.ratio)
                                 : MakeCodec(model, method.codec);
  } catch (const Failure& failure) {
    throw Failure("method " + method.label + ": " + failure.what(), failure.status);
  }
}

std::unique_ptr<engine::Session> QualityRun::NewSession() const {
  engine::SessionOptions options;
  options.context_tokens = settings_.context + settings_.continuation;
  options.max_rows = std::min(settings_.continuation, kMostRows);
  options.threads = settings_.threads;
  return Take(engine_.NewSession(options), "session");
}

QualityRun::Output QualityRun::Force(engine::Session& session, std::span<const int32_t> tokens) const {
  Output output;
  output.logits.reserve(tokens.size() * static_cast<size_t>(engine_.geometry().vocab));
  for (size_t begin = 0; begin < tokens.size(); begin += kMostRows) {
    const auto part = tokens.subspan(begin, std::min<size_t>(kMostRows, tokens.size() - begin));
    const std::vector<engine::Choice> choices = Take(session.DecodeBatch(part), "continuation");
    for (size_t row = 0; row < part.size(); ++row) {
      const std::span<const float> logits = session.Logits(static_cast<int32_t>(row));
      output.logits.insert(output.logits.end(), logits.begin(), logits.end());
      output.choices.push_back(choices[row].token);
    }
  }
  return output;
}

engine::KvBlob QualityRun::Code(const Entry& entry, std::span<const int32_t> context,
                                const engine::KvBlob& blob, MethodSample* sample) {
  const StreamName name = NameStream(model_, context, entry.method.label);
  kvt_codec_report_t report;
  std::span<const uint8_t> frame;
  sample->encode_us = Fastest(settings_.repeat, [&] {
    frame = encoder_.Encode(entry.codec, name, blob, settings_.sinks, settings_.window, &report);
  });
  const uint64_t token_bytes = engine_.geometry().kv.token_bytes();
  sample->sizes.raw = context.size() * token_bytes;
  sample->sizes.exempt = (settings_.sinks + settings_.window) * token_bytes;
  sample->sizes.frame = frame.size();
  engine::KvBlob decoded =
      Take(engine::KvBlob::Create(engine_.geometry().kv, 0, static_cast<int32_t>(context.size())), "rows");
  sample->decode_us =
      Fastest(settings_.repeat, [&] { DecodePart(entry.codec, name, frame, &decoded, &report); });
  return decoded;
}

void QualityRun::Score(const Output& full, const Output& other, std::span<const int32_t> tokens,
                       const std::string& what, DocumentSample* document, MethodSample* sample) const {
  const auto vocab = static_cast<size_t>(engine_.geometry().vocab);
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

DocumentSample QualityRun::Measure(const TextDocument& document, const Show& show) {
  const std::span<const int32_t> tokens = document.tokens;
  const auto context = tokens.first(static_cast<size_t>(settings_.context));
  const auto continuation = tokens.subspan(context.size(), static_cast<size_t>(settings_.continuation));
  const std::unique_ptr<engine::Session> session = NewSession();
  Take(session->Prefill(context, 0,
                        [&](int32_t done, int32_t total) {
                          show("prefill, " + std::to_string(done) + " of " + std::to_string(total) +
                               " tokens");
                          return true;
                        }),
       document.name.c_str());
  const engine::KvBlob blob = Take(session->Export(0, settings_.context), "export");
  const Output full = Force(*session, continuation);

  DocumentSample result;
  result.name = document.name;
  for (const Entry& entry : methods_) {
    show(entry.method.label);
    MethodSample sample;
    const engine::KvBlob decoded = Code(entry, context, blob, &sample);
    const std::unique_ptr<engine::Session> fresh = NewSession();
    Take(fresh->Commit(decoded), "commit");
    Score(full, Force(*fresh, continuation), continuation, document.name + ", " + entry.method.label, &result,
          &sample);
    result.methods.push_back(sample);
  }
  return result;
}

}  // namespace kvt::cli
