// The model's half of the adapter: what llama.cpp knows of a GGUF file, its vocabulary and its chat template.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/engine.h"
#include "engine/gguf_facts.h"
#include "engine/llama_glue.h"
#include "engine/rope_facts.h"
#include "engine/sha256_file.h"

namespace kvt::engine {
namespace {

constexpr int32_t kCheckTokens = 8;

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
  if (blob->positions.size() != static_cast<size_t>(kCheckTokens) ||
      blob->positions.back() != kCheckTokens - 1) {
    return refuse("its cache holds " + std::to_string(blob->positions.size()) + " rows after " +
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
  ClearLastWords();
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
    ClearLastWords();
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
    geometry.heads = llama_model_n_head(model);
    geometry.width = llama_model_n_embd(model);
    geometry.vocab = llama_vocab_n_tokens(loaded->vocab);
    geometry.trained_context = llama_model_n_ctx_train(model);
    geometry.bos = llama_vocab_bos(loaded->vocab);
    geometry.eos = llama_vocab_eos(loaded->vocab);
    geometry.eot = llama_vocab_eot(loaded->vocab);
    geometry.weights_sha256 = *digest;
    loaded->path = path;
    return std::unique_ptr<Engine>(new Engine(std::move(loaded)));
  });
}

const Geometry& Engine::geometry() const { return model_->geometry; }
const std::string& Engine::path() const { return model_->path; }

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

}  // namespace kvt::engine
