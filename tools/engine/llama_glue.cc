#include "engine/llama_glue.h"

#include <algorithm>
#include <utility>

namespace kvt::engine {
namespace {

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

}  // namespace

void StartBackend() {
  [[maybe_unused]] static const bool started = [] {
    llama_log_set(&KeepFirstWords, nullptr);
    llama_backend_init();
    return true;
  }();
  FirstWords().clear();
}

void ClearLastWords() { FirstWords().clear(); }

Error EngineError(ErrorKind kind, std::string what) {
  if (!FirstWords().empty()) what += " (" + FirstWords() + ")";
  FirstWords().clear();
  return Error{kind, std::move(what)};
}

Result<Context> NewContext(llama_model* model, const SessionOptions& options, Recorder* recorder) {
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
  if (recorder != nullptr) {
    params.cb_eval = &Recorder::OnNode;
    params.cb_eval_user_data = recorder;
  }
  FirstWords().clear();
  Context context(llama_init_from_model(model, params), &llama_free);
  if (context == nullptr) {
    return EngineError(ErrorKind::kEngine, "no context of " + std::to_string(options.context_tokens) +
                                               " tokens with flash attention");
  }
  return context;
}

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

}  // namespace kvt::engine
