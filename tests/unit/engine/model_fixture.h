// One engine for all tests of the program, and short prompts. Threads: the test's.
#ifndef KVARTET_TESTS_UNIT_ENGINE_MODEL_FIXTURE_H_
#define KVARTET_TESTS_UNIT_ENGINE_MODEL_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace kvt::engine {

inline std::string ModelPath() { return KVARTET_LLAMA_MODEL; }

inline const Engine& TestEngine() {
  static const std::unique_ptr<Engine> engine = [] {
    Result<std::unique_ptr<Engine>> opened = Engine::Open(ModelPath());
    if (!opened.ok()) {
      ADD_FAILURE() << opened.error().message;
      std::abort();
    }
    return std::move(*opened);
  }();
  return *engine;
}

inline std::unique_ptr<Session> NewSession(int32_t context = 1024) {
  Result<std::unique_ptr<Session>> session =
      TestEngine().NewSession(SessionOptions{.context_tokens = context});
  if (!session.ok()) {
    ADD_FAILURE() << session.error().message;
    std::abort();
  }
  return std::move(*session);
}

// The first `count` tokens of a text that does not repeat itself.
inline std::vector<int32_t> Prompt(int32_t count) {
  std::string text;
  for (int i = 0; static_cast<int>(text.size()) < count * 8; ++i) {
    text += "Item " + std::to_string(i * 37 % 101) + " was stored at shelf " + std::to_string(i) +
            " and read by machine " + std::to_string(i % 7) + ", which asked for the next one. ";
  }
  Result<std::vector<int32_t>> tokens = TestEngine().Tokenize(text, true, false);
  if (!tokens.ok() || tokens->size() < static_cast<size_t>(count)) {
    ADD_FAILURE() << "short prompt";
    std::abort();
  }
  tokens->resize(static_cast<size_t>(count));
  return *tokens;
}

// What a greedy continuation of `count` tokens after `first` gives: every row of logits.
struct Continuation {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
};

inline Continuation Continue(Session& session, int32_t first, int32_t count) {
  Continuation result;
  int32_t token = first;
  for (int32_t i = 0; i < count; ++i) {
    const Result<Choice> choice = session.DecodeOne(token);
    if (!choice.ok()) {
      ADD_FAILURE() << choice.error().message;
      return result;
    }
    const std::span<const float> row = session.Logits(0);
    result.logits.insert(result.logits.end(), row.begin(), row.end());
    token = choice->token;
    result.tokens.push_back(token);
  }
  return result;
}

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace kvt::engine

#endif  // KVARTET_TESTS_UNIT_ENGINE_MODEL_FIXTURE_H_
