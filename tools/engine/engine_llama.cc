// Every call of llama.h is in this file.
#include <llama.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

#include "engine/engine.h"
#include "engine/gguf_facts.h"
#include "engine/rope_facts.h"
#include "engine/sha256_file.h"

namespace kvt::engine {
namespace {

constexpr llama_seq_id kMain = 0;   // the session's sequence
constexpr llama_seq_id kSpare = 1;  // rows on their way in or out; empty between calls
constexpr uint32_t kSequences = 2;
constexpr int32_t kCheckTokens = 8;

using Context = std::unique_ptr<llama_context, decltype(&llama_free)>;

// The first error line of the engine on this thread since it was cleared. Its log callback is the only place
// that says why a call failed, and the lines after the first only say that it did.
std::string& FirstWords() {
  thread_local std::string words;
  return words;
}

void KeepFirstWords(ggml_log_level level, const char* text, void* /*user*/) {
  if (level != GGML_LOG_LEVEL_ERROR) return;
  std::string line(text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  if (FirstWords().empty()) FirstWords() = std::move(line);
}

void StartBackend() {
  [[maybe_unused]] static const bool started = [] {
    llama_log_set(&KeepFirstWords, nullptr);
    llama_backend_init();
    return true;
  }();
  FirstWords().clear();
}

Error EngineError(ErrorKind kind, std::string what) {
  if (!FirstWords().empty()) what += " (" + FirstWords() + ")";
  FirstWords().clear();
  return Error{kind, std::move(what)};
}

// Runs `body` and turns an exception of the engine's into an error.
template <class F>
std::invoke_result_t<F> Guarded(F&& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    return EngineError(ErrorKind::kEngine, std::string("the engine threw: ") + e.what());
  }
}

Result<Context> NewContext(llama_model* model, const SessionOptions& options) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(options.context_tokens);
  params.n_batch = static_cast<uint32_t>(options.batch);
  params.n_ubatch = static_cast<uint32_t>(options.batch);
  params.n_seq_max = kSequences;
  params.n_outputs_max =
      std::max(static_cast<uint32_t>(options.max_rows), kSequences);  // the engine asserts it
  params.n_threads = options.threads;
  params.n_threads_batch = options.threads;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = GGML_TYPE_F16;
  params.type_v = GGML_TYPE_F16;
  params.offload_kqv = false;
  params.op_offload = false;
  params.no_perf = true;
  params.kv_unified = true;
  FirstWords().clear();
  Context context(llama_init_from_model(model, params), &llama_free);
  if (context == nullptr) {
    return EngineError(ErrorKind::kEngine, "no context of " + std::to_string(options.context_tokens) +
                                               " tokens with flash attention");
  }
  return context;
}

// Decodes tokens at positions from `begin` on, in one batch. Logits are kept for all rows or for the last
// one.
Status DecodeAt(llama_context* context, std::span<const int32_t> tokens, int32_t begin, bool all_rows) {
  const size_t count = tokens.size();
  llama_seq_id sequence = kMain;
  std::vector<llama_token> ids(tokens.begin(), tokens.end());
  std::vector<llama_pos> positions(count);
  std::vector<int32_t> sequence_counts(count, 1);
  std::vector<llama_seq_id*> sequences(count, &sequence);
  std::vector<int8_t> outputs(count, all_rows ? 1 : 0);
  outputs.back() = 1;
  for (size_t i = 0; i < count; ++i) positions[i] = begin + static_cast<int32_t>(i);
  llama_batch batch{};
  batch.n_tokens = static_cast<int32_t>(count);
  batch.token = ids.data();
  batch.pos = positions.data();
  batch.n_seq_id = sequence_counts.data();
  batch.seq_id = sequences.data();
  batch.logits = outputs.data();
  FirstWords().clear();
  const Result<int32_t> run = Guarded([&]() -> Result<int32_t> { return llama_decode(context, batch); });
  if (run.ok() && *run == 0) return Done{};
  llama_memory_seq_rm(llama_get_memory(context), kMain, begin, -1);
  if (!run.ok()) return run.error();
  const int32_t code = *run;
  return EngineError(code == 1 ? ErrorKind::kNoSpace : ErrorKind::kEngine,
                     "decode of " + std::to_string(count) + " tokens at position " + std::to_string(begin) +
                         " failed with code " + std::to_string(code));
}

// The engine's own state blob of the main sequence.
Result<std::vector<uint8_t>> RawState(llama_context* context) {
  std::vector<uint8_t> bytes(llama_state_seq_get_size(context, kMain));
  FirstWords().clear();
  const size_t written = llama_state_seq_get_data(context, bytes.data(), bytes.size(), kMain);
  if (bytes.empty() || written != bytes.size()) {
    return EngineError(ErrorKind::kEngine, "state of " + std::to_string(bytes.size()) + " bytes expected, " +
                                               std::to_string(written) + " written");
  }
  return bytes;
}

RopeStyle StyleOf(llama_rope_type type) {
  switch (type) {
    case LLAMA_ROPE_TYPE_NONE:
      return RopeStyle::kNone;
    case LLAMA_ROPE_TYPE_NORM:
      return RopeStyle::kInterleaved;
    case LLAMA_ROPE_TYPE_NEOX:
      return RopeStyle::kHalfSplit;
    default:
      return RopeStyle::kMulti;
  }
}

ModelTraits TraitsOf(const llama_model* model, const GgufFacts& facts) {
  return ModelTraits{.architecture = facts.architecture,
                     .split_count = facts.split_count,
                     .has_encoder = llama_model_has_encoder(model),
                     .has_decoder = llama_model_has_decoder(model),
                     .diffusion = llama_model_is_diffusion(model),
                     .recurrent = llama_model_is_recurrent(model),
                     .hybrid = llama_model_is_hybrid(model),
                     .sliding_window = llama_model_n_swa(model),
                     .kv_lora_rank = facts.kv_lora_rank,
                     .rope = StyleOf(llama_model_rope_type(model))};
}

// Decodes a few tokens and derives the row sizes from the engine's state blob. Then checks that a blob
// rebuilt from its rows is the same, byte for byte, and that the engine takes it and gives it back.
Result<KvGeometry> DeriveGeometry(llama_model* model, const GgufFacts& facts) {
  Result<Context> opened =
      NewContext(model, SessionOptions{.context_tokens = 256, .batch = 128, .max_rows = 1});
  if (!opened.ok()) return opened.error();
  llama_context* context = opened->get();
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorKind::kUnsupported,
                 "model architecture '" + facts.architecture + "' is not supported: " + why};
  };
  llama_memory_t memory = llama_get_memory(context);
  if (memory == nullptr) return refuse("it keeps no KV cache");
  std::vector<int32_t> tokens(kCheckTokens);
  const int32_t vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (int32_t i = 0; i < kCheckTokens; ++i) tokens[static_cast<size_t>(i)] = i % std::max(vocab, 1);
  const Status decoded = DecodeAt(context, tokens, 0, false);
  if (!decoded.ok()) return decoded.error();
  const Result<std::vector<uint8_t>> state = RawState(context);
  if (!state.ok()) return state.error();
  const Result<BlobFacts> blob = ParseBlob(*state);
  if (!blob.ok()) return refuse("its cache is not one plain f16 cache: " + blob.error().message);
  if (blob->tokens != kCheckTokens || blob->pos_begin != 0) {
    return refuse("its cache holds " + std::to_string(blob->tokens) + " rows after " +
                  std::to_string(kCheckTokens) + " tokens");
  }

  const int64_t head_dim =
      facts.head_dim_k.value_or(llama_model_n_embd(model) / std::max(llama_model_n_head(model), 1));
  const Result<KvGeometry> geometry = GeometryOf(*blob, llama_model_n_head_kv(model), head_dim);
  if (!geometry.ok()) return refuse(geometry.error().message);

  const Result<KvBlob> rebuilt = KvBlob::FromBytes(*geometry, *state);
  if (!rebuilt.ok()) return rebuilt.error();
  const std::span<const uint8_t> bytes = rebuilt->bytes();
  if (bytes.size() != state->size() || std::memcmp(bytes.data(), state->data(), bytes.size()) != 0) {
    return refuse("a state blob rebuilt from its rows is not the engine's own");
  }
  llama_memory_seq_rm(memory, kMain, -1, -1);
  FirstWords().clear();
  if (llama_state_seq_set_data(context, bytes.data(), bytes.size(), kMain) != bytes.size()) {
    return EngineError(ErrorKind::kEngine, "the engine does not take a rebuilt state blob");
  }
  const Result<std::vector<uint8_t>> again = RawState(context);
  if (!again.ok()) return again.error();
  if (*again != *state) return refuse("rows that were put back into the cache come out changed");
  return geometry;
}

// The engine aborts when it is asked to tokenize without a vocabulary.
bool HasVocabulary(const llama_vocab* vocab) { return llama_vocab_type(vocab) != LLAMA_VOCAB_TYPE_NONE; }

Error NoVocabulary() {
  return Error{ErrorKind::kUnsupported, "the model has no vocabulary (tokenizer.ggml.model)"};
}

}  // namespace

// ---- Engine ----

struct LoadedModel {
  std::unique_ptr<llama_model, decltype(&llama_model_free)> model{nullptr, &llama_model_free};
  const llama_vocab* vocab = nullptr;
  Geometry geometry;
};

Engine::Engine(std::shared_ptr<const LoadedModel> model) : model_(std::move(model)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Open(const std::string& path) {
  return Guarded([&]() -> Result<std::unique_ptr<Engine>> {
    StartBackend();
    Result<GgufFacts> facts = ReadGgufFacts(path);
    if (!facts.ok()) return facts.error();
    if (facts->split_count > 1) {
      return CheckSupported(
                 ModelTraits{.architecture = facts->architecture, .split_count = facts->split_count})
          .error();
    }
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    auto loaded = std::make_shared<LoadedModel>();
    FirstWords().clear();
    loaded->model.reset(llama_model_load_from_file(path.c_str(), params));
    if (loaded->model == nullptr) {
      return EngineError(ErrorKind::kEngine, "the engine cannot load '" + path + "' of architecture '" +
                                                 facts->architecture + "'");
    }
    llama_model* model = loaded->model.get();
    const Status supported = CheckSupported(TraitsOf(model, *facts));
    if (!supported.ok()) return supported.error();
    Result<KvGeometry> kv = DeriveGeometry(model, *facts);
    if (!kv.ok()) return kv.error();
    Result<std::array<uint8_t, 32>> digest = Sha256File(path);
    if (!digest.ok()) return digest.error();

    loaded->vocab = llama_model_get_vocab(model);
    Geometry& geometry = loaded->geometry;
    geometry.architecture = facts->architecture;
    char description[128] = {};
    llama_model_desc(model, description, sizeof description);
    geometry.description = description;
    geometry.kv = *kv;
    geometry.rope = DescribeRope(StyleOf(llama_model_rope_type(model)), *facts, kv->head_dim_k);
    geometry.vocab = llama_vocab_n_tokens(loaded->vocab);
    geometry.trained_context = llama_model_n_ctx_train(model);
    geometry.bos = llama_vocab_bos(loaded->vocab);
    geometry.eos = llama_vocab_eos(loaded->vocab);
    geometry.eot = llama_vocab_eot(loaded->vocab);
    geometry.weights_sha256 = *digest;
    return std::unique_ptr<Engine>(new Engine(std::move(loaded)));
  });
}

const Geometry& Engine::geometry() const { return model_->geometry; }

bool Engine::IsEnd(int32_t token) const {
  return token >= 0 && token < model_->geometry.vocab && llama_vocab_is_eog(model_->vocab, token);
}

Result<std::vector<int32_t>> Engine::Tokenize(std::string_view text, bool add_special,
                                              bool parse_special) const {
  if (text.size() > INT32_MAX / 2) {
    return Error{ErrorKind::kInvalid,
                 "text has " + std::to_string(text.size()) + " bytes, must be under 2^30"};
  }
  if (!HasVocabulary(model_->vocab)) return NoVocabulary();
  return Guarded([&]() -> Result<std::vector<int32_t>> {
    std::vector<int32_t> tokens(text.size() + 16);
    const auto call = [&] {
      return llama_tokenize(model_->vocab, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                            static_cast<int32_t>(tokens.size()), add_special, parse_special);
    };
    int32_t count = call();
    if (count < 0 && count != INT32_MIN) {
      tokens.resize(static_cast<size_t>(-count));
      count = call();
    }
    if (count < 0)
      return Error{ErrorKind::kEngine,
                   "the engine cannot tokenize a text of " + std::to_string(text.size()) + " bytes"};
    tokens.resize(static_cast<size_t>(count));
    return tokens;
  });
}

Result<std::string> Engine::Detokenize(std::span<const int32_t> tokens, bool special) const {
  if (!HasVocabulary(model_->vocab)) return NoVocabulary();
  return Guarded([&]() -> Result<std::string> {
    std::string text;
    std::string piece(64, '\0');
    for (const int32_t token : tokens) {
      if (token < 0 || token >= model_->geometry.vocab) {
        return Error{ErrorKind::kInvalid, "token is " + std::to_string(token) + ", must be 0 to " +
                                              std::to_string(model_->geometry.vocab - 1)};
      }
      const auto call = [&] {
        return llama_token_to_piece(model_->vocab, token, piece.data(), static_cast<int32_t>(piece.size()), 0,
                                    special);
      };
      int32_t count = call();
      if (count < 0) {
        piece.resize(static_cast<size_t>(-count));
        count = call();
      }
      if (count < 0)
        return Error{ErrorKind::kEngine, "the engine cannot write out token " + std::to_string(token)};
      text.append(piece, 0, static_cast<size_t>(count));
    }
    return text;
  });
}

std::string Engine::RenderChat(const char* system, const char* user) const {
  const char* chat_template = llama_model_chat_template(model_->model.get(), nullptr);
  if (chat_template == nullptr) return "";
  std::vector<llama_chat_message> messages;
  if (system != nullptr) messages.push_back({"system", system});
  messages.push_back({"user", user});
  std::string text(4096, '\0');
  const int32_t size = llama_chat_apply_template(chat_template, messages.data(), messages.size(), true,
                                                 text.data(), static_cast<int32_t>(text.size()));
  if (size < 0 || static_cast<size_t>(size) > text.size()) return "";
  text.resize(static_cast<size_t>(size));
  return text;
}

bool Engine::AddsBos() const { return llama_vocab_get_add_bos(model_->vocab); }

// ---- Session ----

struct Session::Impl {
  std::shared_ptr<const LoadedModel> model;  // outlives the context
  Context context{nullptr, &llama_free};
  SessionOptions options;
  int32_t length = 0;
  int32_t capacity = 0;
  int32_t rows = 0;       // rows of logits of the last decode
  int32_t first_row = 0;  // where the first of them was in its batch

  llama_memory_t memory() const { return llama_get_memory(context.get()); }
  const KvGeometry& kv() const { return model->geometry.kv; }

  Status CheckTokens(std::span<const int32_t> tokens, const char* call) const {
    if (tokens.empty()) return Error{ErrorKind::kInvalid, std::string(call) + ": no tokens"};
    if (tokens.size() > static_cast<size_t>(capacity - length)) {
      return Error{ErrorKind::kNoSpace, std::string(call) + ": " + std::to_string(tokens.size()) +
                                            " tokens do not fit after " + std::to_string(length) +
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
    Status status = DecodeAt(context.get(), tokens, length, all_rows);
    if (!status.ok()) return status;
    const auto count = static_cast<int32_t>(tokens.size());
    length += count;
    rows = all_rows ? count : 1;
    first_row = all_rows ? 0 : count - 1;
    return status;
  }

  void Cut(int32_t to) {
    llama_memory_seq_rm(memory(), kMain, to, -1);
    length = to;
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
  return Guarded([&]() -> Result<std::unique_ptr<Session>> {
    Result<Context> context = NewContext(model_->model.get(), options);
    if (!context.ok()) return context.error();
    auto impl = std::make_unique<Session::Impl>();
    impl->model = model_;
    impl->context = std::move(*context);
    impl->options = options;
    impl->capacity = static_cast<int32_t>(llama_n_ctx(impl->context.get()));
    return std::unique_ptr<Session>(new Session(std::move(impl)));
  });
}

int32_t Session::Length() const { return impl_->length; }
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
    const int32_t before = s.length;
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

Status Session::Truncate(int32_t length) {
  if (length < 0 || length > impl_->length) {
    return Error{ErrorKind::kInvalid, "truncate: length is " + std::to_string(length) + ", must be 0 to " +
                                          std::to_string(impl_->length)};
  }
  return Guarded([&]() -> Status {
    impl_->Cut(length);
    return Done{};
  });
}

Result<KvBlob> Session::Reserve(int32_t begin, int32_t tokens) const {
  return KvBlob::Create(impl_->kv(), begin, tokens);
}

Result<KvBlob> Session::Export(int32_t begin, int32_t end) {
  if (begin >= end) {
    return Error{ErrorKind::kInvalid, "export: [" + std::to_string(begin) + ", " + std::to_string(end) +
                                          ") must be a range inside [0, " + std::to_string(Length()) + ")"};
  }
  Result<KvBlob> blob = Reserve(begin, end - begin);
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
  if (end > s.length) {
    return Error{ErrorKind::kInvalid, "export: [" + std::to_string(begin) + ", " + std::to_string(end) +
                                          ") must be a range inside [0, " + std::to_string(s.length) + ")"};
  }
  return Guarded([&]() -> Status {
    const std::span<uint8_t> bytes = blob.bytes();
    // The spare sequence shares the cells of the range: no rows are copied until they go into the blob.
    llama_memory_seq_cp(s.memory(), kMain, kSpare, begin, end);
    FirstWords().clear();
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
    if (facts->pos_begin != begin || facts->tokens != end - begin) {
      return Error{ErrorKind::kEngine, "export: the engine gave positions from " +
                                           std::to_string(facts->pos_begin) + ", asked from " +
                                           std::to_string(begin)};
    }
    return Done{};
  });
}

Status Session::Commit(const KvBlob& blob) {
  Impl& s = *impl_;
  if (blob.geometry() != s.kv())
    return Error{ErrorKind::kInvalid, "commit: the blob's geometry is not the model's"};
  if (blob.pos_begin() > s.length) {
    return Error{ErrorKind::kInvalid, "commit: pos_begin is " + std::to_string(blob.pos_begin()) +
                                          ", must be at most the length " + std::to_string(s.length)};
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
    FirstWords().clear();
    if (llama_state_seq_set_data(s.context.get(), bytes.data(), bytes.size(), kSpare) != bytes.size()) {
      llama_memory_seq_rm(s.memory(), kSpare, -1, -1);
      s.Cut(blob.pos_begin());
      return EngineError(ErrorKind::kEngine, "commit: the engine refused the rows; the cache is cut to " +
                                                 std::to_string(s.length) + " tokens");
    }
    llama_memory_seq_cp(s.memory(), kSpare, kMain, blob.pos_begin(), blob.pos_end());
    llama_memory_seq_rm(s.memory(), kSpare, -1, -1);
    s.length = std::max(s.length, blob.pos_end());
    return Done{};
  });
}

}  // namespace kvt::engine
