// The sequence's half of the adapter: prefill, decode, truncation, and rows in and out of a llama.cpp
// context.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/engine.h"
#include "engine/llama_glue.h"

namespace kvt::engine {

struct Session::Impl {
  std::shared_ptr<const LoadedModel> model;  // outlives the context
  std::optional<Recorder> recorder;          // outlives the context
  Context context{nullptr, &llama_free};
  SessionOptions options;
  std::vector<int32_t> held;  // the position of each cell
  int32_t capacity = 0;
  int32_t rows = 0;       // rows of logits of the last decode
  int32_t first_row = 0;  // where the first of them was in its batch

  llama_memory_t memory() const { return llama_get_memory(context.get()); }
  const KvGeometry& kv() const { return model->geometry.kv; }
  int32_t length() const { return held.empty() ? 0 : held.back() + 1; }
  bool has_gaps() const { return held.size() != static_cast<size_t>(length()); }
  // Where the first position at or above this one is in `held`.
  std::vector<int32_t>::const_iterator At(int32_t position) const {
    return std::lower_bound(held.begin(), held.end(), position);
  }
  bool Holds(int32_t position) const { return std::binary_search(held.begin(), held.end(), position); }

  Status CheckTokens(std::span<const int32_t> tokens, const char* call) const {
    if (tokens.empty()) return Error{ErrorKind::kInvalid, std::string(call) + ": no tokens"};
    if (tokens.size() > static_cast<size_t>(capacity) - held.size()) {
      return Error{ErrorKind::kNoSpace, std::string(call) + ": " + std::to_string(tokens.size()) +
                                            " tokens do not fit after " + std::to_string(held.size()) +
                                            " in a context of " + std::to_string(capacity)};
    }
    for (const int32_t token : tokens) {
      if (token < 0 || token >= model->geometry.vocab) {
        return Error{ErrorKind::kInvalid, std::string(call) + ": token is " + std::to_string(token) +
                                              ", must be 0 to " + std::to_string(model->geometry.vocab - 1)};
      }
    }
    return Done{};
  }

  Status Append(std::span<const int32_t> tokens, bool all_rows) {
    rows = 0;
    const auto count = static_cast<int32_t>(tokens.size());
    const int32_t begin = length();
    if (recorder) recorder->Begin(begin, count);
    Status status = DecodeAt(context.get(), tokens, begin, all_rows);
    if (recorder) {
      Status recorded = recorder->End();
      if (status.ok()) status = std::move(recorded);
    }
    if (!status.ok()) {
      Cut(begin);
      return status;
    }
    Hold(begin, begin + count);
    rows = all_rows ? count : 1;
    first_row = all_rows ? 0 : count - 1;
    return status;
  }

  void Cut(int32_t to) {
    llama_memory_seq_rm(memory(), kMain, to, -1);
    if (recorder) recorder->Cut(to);
    held.erase(At(to), held.end());
  }

  // From `begin` on, the cells now hold [begin, end).
  void Hold(int32_t begin, int32_t end) {
    held.erase(At(begin), held.end());
    for (int32_t position = begin; position < end; ++position) held.push_back(position);
  }

  // Puts the rows side by side in the order of their positions: the engine would fill the holes between them
  // with the next tokens, and its attention goes over all cells up to the last one.
  Status Compact() {
    const Result<std::vector<uint8_t>> state = RawState(context.get());
    llama_memory_seq_rm(memory(), kMain, -1, -1);
    ClearLastWords();
    if (state.ok() &&
        llama_state_seq_set_data(context.get(), state->data(), state->size(), kMain) == state->size())
      return Done{};
    Cut(0);
    if (!state.ok()) return state.error();
    return EngineError(ErrorKind::kEngine, "keep: the engine refused its own rows; the cache is empty");
  }
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Engine::NewSession(const SessionOptions& options) const {
  const auto bad = [](const char* field, int32_t value, const char* want) {
    return Error{ErrorKind::kInvalid,
                 std::string(field) + " is " + std::to_string(value) + ", must be " + want};
  };
  if (options.context_tokens < 1 || options.context_tokens > kMaxBlobTokens)
    return bad("context_tokens", options.context_tokens, "1 to 2^24");
  if (options.batch < 2 * kMinChunk || options.batch > 65536)
    return bad("batch", options.batch, "128 to 65536");
  if (options.max_rows < 1 || options.max_rows > options.batch)
    return bad("max_rows", options.max_rows, "1 to batch");
  if (options.threads < 1 || options.threads > 512) return bad("threads", options.threads, "1 to 512");
  if (options.capture_every < 0) return bad("capture_every", options.capture_every, "0 or more");
  return Guarded([&]() -> Result<std::unique_ptr<Session>> {
    auto impl = std::make_unique<Session::Impl>();
    impl->model = model_;
    if (options.capture_every > 0) impl->recorder.emplace(model_->geometry, options.capture_every);
    Result<Context> context =
        NewContext(model_->model.get(), options, impl->recorder ? &*impl->recorder : nullptr);
    if (!context.ok()) return context.error();
    impl->context = std::move(*context);
    impl->options = options;
    impl->capacity = static_cast<int32_t>(llama_n_ctx(impl->context.get()));
    return std::unique_ptr<Session>(new Session(std::move(impl)));
  });
}

int32_t Session::Length() const { return impl_->length(); }
int32_t Session::Capacity() const { return impl_->capacity; }

Result<Choice> Session::Prefill(std::span<const int32_t> tokens, int32_t chunk, const Progress& progress) {
  Impl& s = *impl_;
  if (chunk == 0) chunk = s.options.batch;
  if (chunk > s.options.batch) {
    return Error{ErrorKind::kInvalid, "chunk is " + std::to_string(chunk) +
                                          ", must be at most batch = " + std::to_string(s.options.batch)};
  }
  const Status checked = s.CheckTokens(tokens, "prefill");
  if (!checked.ok()) return checked.error();
  const auto total = static_cast<int32_t>(tokens.size());
  const Result<std::vector<int32_t>> sizes = PrefillChunks(total, chunk);
  if (!sizes.ok()) return sizes.error();
  return Guarded([&]() -> Result<Choice> {
    const int32_t before = s.length();
    int32_t done = 0;
    for (const int32_t size : *sizes) {
      const Status status =
          s.Append(tokens.subspan(static_cast<size_t>(done), static_cast<size_t>(size)), false);
      if (!status.ok()) {
        s.Cut(before);
        return status.error();
      }
      done += size;
      if (progress && !progress(done, total)) {
        s.Cut(before);
        s.rows = 0;
        return Error{ErrorKind::kCancelled, "prefill: stopped after " + std::to_string(done) + " of " +
                                                std::to_string(total) + " tokens"};
      }
    }
    return Top2(Logits(0));
  });
}

Result<Choice> Session::DecodeOne(int32_t token) {
  Result<std::vector<Choice>> choices = DecodeBatch(std::span(&token, 1));
  if (!choices.ok()) return choices.error();
  return choices->front();
}

Result<std::vector<Choice>> Session::DecodeBatch(std::span<const int32_t> tokens) {
  Impl& s = *impl_;
  if (tokens.size() > static_cast<size_t>(s.options.max_rows)) {
    return Error{ErrorKind::kInvalid,
                 "decode: " + std::to_string(tokens.size()) +
                     " tokens, must be 1 to max_rows = " + std::to_string(s.options.max_rows)};
  }
  const Status checked = s.CheckTokens(tokens, "decode");
  if (!checked.ok()) return checked.error();
  return Guarded([&]() -> Result<std::vector<Choice>> {
    const Status status = s.Append(tokens, true);
    if (!status.ok()) return status.error();
    std::vector<Choice> choices;
    for (int32_t row = 0; row < s.rows; ++row) choices.push_back(Top2(Logits(row)));
    return choices;
  });
}

std::span<const float> Session::Logits(int32_t row) const {
  if (row < 0 || row >= impl_->rows) return {};
  const float* logits = llama_get_logits_ith(impl_->context.get(), impl_->first_row + row);
  if (logits == nullptr) return {};
  return {logits, static_cast<size_t>(impl_->model->geometry.vocab)};
}

int32_t Session::Cells() const {
  return BlobTokens(impl_->kv(), llama_state_seq_get_size(impl_->context.get(), kMain));
}

void Session::CaptureFrom(int32_t position) {
  if (impl_->recorder) impl_->recorder->From(position);
}

Captured Session::TakeCaptured() { return impl_->recorder ? impl_->recorder->Take() : Captured{}; }

Status Session::Truncate(int32_t length) {
  if (length < 0 || length > Length()) {
    return Error{ErrorKind::kInvalid, "truncate: length is " + std::to_string(length) + ", must be 0 to " +
                                          std::to_string(Length())};
  }
  if (length > 0 && !impl_->Holds(length - 1)) {
    return Error{ErrorKind::kInvalid, "truncate: length is " + std::to_string(length) +
                                          ", and the position before it was dropped"};
  }
  return Guarded([&]() -> Status {
    impl_->Cut(length);
    return Done{};
  });
}

Status Session::Keep(std::span<const int32_t> positions) {
  Impl& s = *impl_;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!s.Holds(positions[i]) || (i > 0 && positions[i] <= positions[i - 1])) {
      return Error{ErrorKind::kInvalid, "keep: positions[" + std::to_string(i) + "] is " +
                                            std::to_string(positions[i]) +
                                            ", must be one that is held and above the one before"};
    }
  }
  if (positions.empty() || positions.back() != Length() - 1) {
    return Error{ErrorKind::kInvalid, "keep: the last position, " + std::to_string(Length() - 1) +
                                          ", must stay: the next token follows it"};
  }
  if (positions.size() == s.held.size()) return Done{};
  return Guarded([&]() -> Status {
    int32_t next = 0;
    for (const int32_t position : positions) {
      if (position > next) llama_memory_seq_rm(s.memory(), kMain, next, position);
      next = position + 1;
    }
    s.held.assign(positions.begin(), positions.end());
    try {
      return s.Compact();
    } catch (...) {
      s.Cut(0);
      throw;
    }
  });
}

Result<KvBlob> Session::Reserve(int32_t begin, int32_t tokens) const {
  return KvBlob::Create(impl_->kv(), begin, tokens);
}

Result<KvBlob> Session::Export(int32_t begin, int32_t end) {
  if (begin < 0 || begin >= end || end > Length()) {
    return Error{ErrorKind::kInvalid, "export: [" + std::to_string(begin) + ", " + std::to_string(end) +
                                          ") must be a range inside [0, " + std::to_string(Length()) + ")"};
  }
  Result<KvBlob> blob = KvBlob::Create(impl_->kv(), {impl_->At(begin), impl_->At(end)});
  if (!blob.ok()) return blob;
  const Status status = ExportInto(*blob);
  if (!status.ok()) return status.error();
  return blob;
}

Status Session::ExportInto(KvBlob& blob) {
  Impl& s = *impl_;
  if (blob.geometry() != s.kv()) {
    return Error{ErrorKind::kInvalid, "export: the blob's geometry is not the model's"};
  }
  const int32_t begin = blob.pos_begin();
  const int32_t end = blob.pos_end();
  if (end > s.length()) {
    return Error{ErrorKind::kInvalid, "export: [" + std::to_string(begin) + ", " + std::to_string(end) +
                                          ") must be a range inside [0, " + std::to_string(s.length()) + ")"};
  }
  if (!std::equal(s.At(begin), s.At(end), blob.positions().begin(), blob.positions().end())) {
    return Error{ErrorKind::kInvalid, "export: the blob's positions in [" + std::to_string(begin) + ", " +
                                          std::to_string(end) + ") are not those that are held"};
  }
  return Guarded([&]() -> Status {
    const std::span<uint8_t> bytes = blob.bytes();
    // The spare sequence shares the cells of the range: no rows are copied until they go into the blob.
    llama_memory_seq_cp(s.memory(), kMain, kSpare, begin, end);
    ClearLastWords();
    const size_t size = llama_state_seq_get_size(s.context.get(), kSpare);
    const size_t written = size == bytes.size()
                               ? llama_state_seq_get_data(s.context.get(), bytes.data(), bytes.size(), kSpare)
                               : 0;
    llama_memory_seq_rm(s.memory(), kSpare, -1, -1);
    const Result<BlobFacts> facts = ParseBlob(bytes, s.kv());
    blob.WriteHeaders();
    if (written != bytes.size()) {
      return EngineError(ErrorKind::kEngine, "export: the engine has " + std::to_string(size) + " bytes, " +
                                                 std::to_string(bytes.size()) + " expected, " +
                                                 std::to_string(written) + " written");
    }
    if (!facts.ok()) return facts.error();
    if (facts->positions != blob.positions()) {
      return Error{ErrorKind::kEngine, "export: the engine holds other positions in [" +
                                           std::to_string(begin) + ", " + std::to_string(end) +
                                           ") than it was given"};
    }
    return Done{};
  });
}

Status Session::Commit(const KvBlob& blob) {
  Impl& s = *impl_;
  if (blob.geometry() != s.kv())
    return Error{ErrorKind::kInvalid, "commit: the blob's geometry is not the model's"};
  if (blob.has_gaps() || s.has_gaps()) {
    return Error{ErrorKind::kInvalid, std::string("commit: the positions of the ") +
                                          (blob.has_gaps() ? "blob" : "cache") + " have gaps"};
  }
  if (blob.pos_begin() > s.length()) {
    return Error{ErrorKind::kInvalid, "commit: pos_begin is " + std::to_string(blob.pos_begin()) +
                                          ", must be at most the length " + std::to_string(s.length())};
  }
  if (blob.pos_end() > s.capacity) {
    return Error{ErrorKind::kNoSpace, "commit: pos_end is " + std::to_string(blob.pos_end()) +
                                          ", the context has " + std::to_string(s.capacity)};
  }
  const std::span<const uint8_t> bytes = blob.bytes();
  const Result<BlobFacts> facts = ParseBlob(bytes, s.kv());
  if (!facts.ok()) return facts.error();
  return Guarded([&]() -> Status {
    // Freed cells are the first that the engine fills again, so cell i holds position i as before.
    llama_memory_seq_rm(s.memory(), kMain, blob.pos_begin(), blob.pos_end());
    ClearLastWords();
    if (llama_state_seq_set_data(s.context.get(), bytes.data(), bytes.size(), kSpare) != bytes.size()) {
      llama_memory_seq_rm(s.memory(), kSpare, -1, -1);
      s.Cut(blob.pos_begin());
      return EngineError(ErrorKind::kEngine, "commit: the engine refused the rows; the cache is cut to " +
                                                 std::to_string(s.length()) + " tokens");
    }
    llama_memory_seq_cp(s.memory(), kSpare, kMain, blob.pos_begin(), blob.pos_end());
    llama_memory_seq_rm(s.memory(), kSpare, -1, -1);
    s.Hold(blob.pos_begin(), std::max(s.length(), blob.pos_end()));
    return Done{};
  });
}

}  // namespace kvt::engine
