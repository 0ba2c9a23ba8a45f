#include "kvartet/prompt.h"

#include <fstream>
#include <sstream>

#include "kvartet/library.h"

namespace kvt::cli {
namespace {

constexpr char kSystem[] = "You are a helpful assistant. Answer from the document.";

int32_t Room(const Settings& settings, const Prompt& prompt) {
  return static_cast<int32_t>(prompt.tokens.size()) + settings.tokens + settings.draft + 8;
}

}  // namespace

Prompt MakePrompt(const engine::Engine& engine, const Settings& settings) {
  std::ifstream file(settings.prompt, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw Failure("--prompt " + settings.prompt + ": cannot be read, or is empty");
  Prompt prompt;
  prompt.tokens = Take(engine.Chat(kSystem, text.str(), settings.question), "prompt").tokens;
  const int32_t room = Room(settings, prompt);
  if (room > engine.geometry().trained_context) {
    throw Failure("--prompt " + settings.prompt + " has " + std::to_string(prompt.tokens.size()) +
                  " tokens with the question; with " + std::to_string(settings.tokens) +
                  " tokens of output that is more than the model's context of " +
                  std::to_string(engine.geometry().trained_context));
  }
  if (static_cast<int32_t>(prompt.tokens.size()) <= engine::kMinChunk + KVT_GRAIN_TOKENS) {
    throw Failure("--prompt " + settings.prompt + " has " + std::to_string(prompt.tokens.size()) +
                  " tokens with the question; the demo needs more than " +
                  std::to_string(engine::kMinChunk + KVT_GRAIN_TOKENS));
  }
  return prompt;
}

std::unique_ptr<engine::Session> NewSession(const engine::Engine& engine, const Settings& settings,
                                            const Prompt& prompt) {
  engine::SessionOptions options;
  options.context_tokens = Room(settings, prompt);
  options.threads = settings.threads;
  return Take(engine.NewSession(options), "session");
}

}  // namespace kvt::cli
