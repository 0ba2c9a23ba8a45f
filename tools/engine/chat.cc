// The chat prompt: the template is applied to marks, and only what is around the marks may become control
// tokens.
#include "engine/engine.h"

namespace kvt::engine {

Result<ChatPrompt> Engine::Chat(std::string_view system, std::string_view document,
                                std::string_view question) const {
  const std::string system_mark = "@@kvt-system@@";
  const std::string user_mark = "@@kvt-user@@";
  const std::string text = RenderChat(system.empty() ? nullptr : system_mark.c_str(), user_mark.c_str());
  const size_t system_at = system.empty() ? 0 : text.find(system_mark);
  const size_t user_at = text.find(user_mark);

  ChatPrompt prompt;
  prompt.templated = user_at != std::string::npos && system_at != std::string::npos && system_at <= user_at;
  std::string before_system, before_user, after_user;
  if (prompt.templated) {
    before_system = system.empty() ? "" : text.substr(0, system_at);
    const size_t from = system.empty() ? 0 : system_at + system_mark.size();
    before_user = text.substr(from, user_at - from);
    after_user = text.substr(user_at + user_mark.size());
  } else {
    before_user = system.empty() ? "" : "\n\n";
    after_user = "\n\n";
  }

  if (AddsBos()) prompt.tokens.push_back(geometry().bos);
  Status status = Done{};
  const auto append = [&](std::string_view piece, bool control) {
    if (piece.empty() || !status.ok()) return;
    const Result<std::vector<int32_t>> tokens = Tokenize(piece, false, control);
    if (tokens.ok()) {
      prompt.tokens.insert(prompt.tokens.end(), tokens->begin(), tokens->end());
    } else {
      status = tokens.error();
    }
  };
  append(before_system, true);
  append(system, false);
  append(before_user, true);
  append(document, false);
  prompt.document_end = static_cast<int32_t>(prompt.tokens.size());
  append((document.empty() ? "" : "\n\n") + std::string(question), false);
  append(after_user, true);
  if (!status.ok()) return status.error();
  return prompt;
}

}  // namespace kvt::engine
