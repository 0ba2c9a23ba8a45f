// What the two halves of the adapter share of llama.cpp: contexts, decoding, state, and the engine's last
// words.
//
// llama.h is called in this file's .cc, engine_llama.cc, session_llama.cc and f32_copy.cc, and nowhere else.
// Threads: as the functions of engine.h that call these.
#ifndef KVARTET_TOOLS_ENGINE_LLAMA_GLUE_H_
#define KVARTET_TOOLS_ENGINE_LLAMA_GLUE_H_

#include <llama.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/engine.h"
#include "engine/recorder.h"

namespace kvt::engine {

inline constexpr llama_seq_id kMain = 0;   // the session's sequence
inline constexpr llama_seq_id kSpare = 1;  // rows on their way in or out; empty between calls
inline constexpr uint32_t kSequences = 2;

using Context = std::unique_ptr<llama_context, decltype(&llama_free)>;

struct LoadedModel {
  std::unique_ptr<llama_model, decltype(&llama_model_free)> model{nullptr, &llama_model_free};
  const llama_vocab* vocab = nullptr;
  Geometry geometry;
  std::string path;
};

// Starts llama.cpp once in the process, and forgets the last words.
void StartBackend();
void ClearLastWords();

// An error with the first error line that the engine has logged on this thread since it was cleared: the
// lines after it only say that something failed.
Error EngineError(ErrorKind kind, std::string what);

// Runs `body` and turns an exception of the engine's into an error.
template <class F>
std::invoke_result_t<F> Guarded(F&& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    return EngineError(ErrorKind::kEngine, std::string("the engine threw: ") + e.what());
  }
}

// `recorder`, if any, sees the graph while it is computed; it outlives the context.
Result<Context> NewContext(llama_model* model, const SessionOptions& options, Recorder* recorder = nullptr);

// Decodes tokens at positions from `begin` on, in one batch. Logits are kept for all rows or for the last
// one.
Status DecodeAt(llama_context* context, std::span<const int32_t> tokens, int32_t begin, bool all_rows);

// The engine's own state blob of the main sequence.
Result<std::vector<uint8_t>> RawState(llama_context* context);

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_LLAMA_GLUE_H_
