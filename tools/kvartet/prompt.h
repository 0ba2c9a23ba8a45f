// The prompt of the demo: a document, a question, and the tokens that both processes agree on.
#ifndef KVARTET_TOOLS_KVARTET_PROMPT_H_
#define KVARTET_TOOLS_KVARTET_PROMPT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "kvartet/settings.h"

namespace kvt::cli {

struct Prompt {
  std::vector<int32_t> tokens;
  // All but the last token: the KV that ways differ in. The last token is decoded alone, so every way
  // computes the same first logits.
  std::span<const int32_t> prefix() const { return {tokens.data(), tokens.size() - 1}; }
  int32_t last() const { return tokens.back(); }
};

// Reads and tokenises; throws Failure when the file cannot be read, or the prompt and the output do not fit
// the model.
Prompt MakePrompt(const engine::Engine& engine, const Settings& settings);

// A session with room for the prompt, the output and a draft.
std::unique_ptr<engine::Session> NewSession(const engine::Engine& engine, const Settings& settings,
                                            const Prompt& prompt);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_PROMPT_H_
