#include "engine/probe.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace kvt::engine {
namespace {

constexpr std::string_view kText =
    "A cache of keys and values is worth as much as the time it saves. The first machine reads the document "
    "once and keeps "
    "what it computed for every layer and every token; the second asks for it by name, checks each block "
    "that arrives, and "
    "goes on from there as if it had read the document itself. Nothing that was lost on the way may change a "
    "single word of "
    "the answer, so every drafted token is checked against the full rows before anybody gets to see it. ";

using Rows = std::vector<std::vector<float>>;

// Copies the rows of the last decode.
Rows CopyRows(const Session& session, int32_t count) {
  Rows rows;
  for (int32_t i = 0; i < count; ++i) {
    const std::span<const float> row = session.Logits(i);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

// Puts rows for positions [0, context) into an empty session: the seed's rows, over and over.
Status Fill(Session& session, const KvBlob& seed, int32_t context) {
  Result<KvBlob> blob = session.Reserve(0, context);
  if (!blob.ok()) return blob.error();
  for (int32_t layer = 0; layer < seed.geometry().layers; ++layer) {
    for (const bool k : {true, false}) {
      const RowView from = k ? seed.K(layer) : seed.V(layer);
      const RowView to = k ? blob->K(layer) : blob->V(layer);
      for (int32_t t = 0; t < context; ++t) {
        std::memcpy(to.base + to.token_stride * t, from.base + from.token_stride * (t % from.tokens),
                    static_cast<size_t>(to.token_stride));
      }
    }
  }
  return session.Commit(*blob);
}

// Decodes one batch after position `context` and copies its rows.
Result<Rows> Batch(Session& session, int32_t context, std::span<const int32_t> tokens) {
  const Status cut = session.Truncate(context);
  if (!cut.ok()) return cut.error();
  const Result<std::vector<Choice>> choices = session.DecodeBatch(tokens);
  if (!choices.ok()) return choices.error();
  return CopyRows(session, static_cast<int32_t>(tokens.size()));
}

void Append(ProbeRows* rows, const std::vector<float>& alone, const std::vector<float>& batched,
            int32_t width, int32_t place) {
  rows->alone.insert(rows->alone.end(), alone.begin(), alone.end());
  rows->batched.insert(rows->batched.end(), batched.begin(), batched.end());
  rows->widths.push_back(static_cast<uint32_t>(width));
  rows->places.push_back(static_cast<uint32_t>(place));
}

Status MeasureWidth(Session& session, int32_t context, int32_t width, std::span<const int32_t> tokens,
                    const Rows& single, ProbeRows* rows) {
  const auto count = static_cast<size_t>(width);
  const Result<Rows> first = Batch(session, context, tokens.first(count));
  if (!first.ok()) return first.error();
  for (size_t i = 0; i < count; ++i) Append(rows, single[i], (*first)[i], width, static_cast<int32_t>(i));
  // The rows of the first width - 1 tokens are still the batch's own: the last token comes again, now at
  // place 0.
  const Result<Rows> shifted = Batch(session, context + width - 1, tokens.subspan(count - 1, count));
  if (!shifted.ok()) return shifted.error();
  Append(rows, single[count - 1], shifted->front(), width, 0);
  return Done{};
}

}  // namespace

Result<ProbeRows> Probe(const Engine& engine, const ProbeOptions& options) {
  int32_t widest = 0;
  for (const int32_t width : options.widths) {
    if (width < 2 || width > options.session.max_rows) {
      return Error{ErrorKind::kInvalid, "width is " + std::to_string(width) + ", must be 2 to max_rows = " +
                                            std::to_string(options.session.max_rows)};
    }
    widest = std::max(widest, width);
  }
  int32_t longest = 0;
  for (const int32_t context : options.contexts) {
    if (context < 1)
      return Error{ErrorKind::kInvalid, "context is " + std::to_string(context) + ", must be 1 or more"};
    longest = std::max(longest, context);
  }
  if (widest == 0 || longest == 0) return Error{ErrorKind::kInvalid, "the probe needs a width and a context"};

  std::string text;
  Result<std::vector<int32_t>> tokens = std::vector<int32_t>{};
  const size_t wanted = static_cast<size_t>(kMinChunk + 2 * widest);
  while (tokens->size() < wanted) {
    text += kText;
    tokens = engine.Tokenize(text, false, false);
    if (!tokens.ok()) return tokens.error();
    if (tokens->empty())
      return Error{ErrorKind::kEngine, "the model's vocabulary gives no tokens for English text"};
  }
  const std::span<const int32_t> seed_tokens = std::span(*tokens).first(static_cast<size_t>(kMinChunk));
  const std::span<const int32_t> tail = std::span(*tokens).subspan(static_cast<size_t>(kMinChunk));

  SessionOptions session_options = options.session;
  session_options.context_tokens = std::max(longest, kMinChunk) + 2 * widest;
  Result<std::unique_ptr<Session>> opened = engine.NewSession(session_options);
  if (!opened.ok()) return opened.error();
  Session& session = **opened;
  const Result<Choice> prefilled = session.Prefill(seed_tokens);
  if (!prefilled.ok()) return prefilled.error();
  const Result<KvBlob> seed = session.Export(0, kMinChunk);
  if (!seed.ok()) return seed.error();

  ProbeRows rows;
  rows.vocabulary = static_cast<size_t>(engine.geometry().vocab);
  for (const int32_t context : options.contexts) {
    Status filled = session.Truncate(0);
    if (filled.ok()) filled = Fill(session, *seed, context);
    if (!filled.ok()) return filled.error();
    Rows single;
    for (const int32_t token : tail.first(static_cast<size_t>(widest))) {
      const Result<Choice> choice = session.DecodeOne(token);
      if (!choice.ok()) return choice.error();
      single.push_back(CopyRows(session, 1).front());
    }
    for (const int32_t width : options.widths) {
      const Status measured = MeasureWidth(session, context, width, tail, single, &rows);
      if (!measured.ok()) return measured.error();
    }
  }
  return rows;
}

}  // namespace kvt::engine
