#include "kvartet/quality_contexts.h"

#include <algorithm>
#include <functional>

#include "kvartet/library.h"

namespace kvt::cli {
namespace {

// Tokens at the end of a copy probe's context that are not the text's.
int32_t TailTokens(const ContextCut& cut) { return static_cast<int32_t>(cut.marker.size()) + kCueTokens; }

}  // namespace

bool IsCopyProbe(const std::string& file_name) {
  const size_t kind = file_name.find_first_not_of("0123456789");
  return kind != 0 && kind != std::string::npos && file_name.compare(kind, 6, "-copy-") == 0;
}

bool HasContext(const QualityDocument& document, int32_t length, const ContextCut& cut) {
  const int32_t needed = document.copy ? length - TailTokens(cut) : length + cut.continuation;
  return document.tokens.size() >= static_cast<size_t>(needed);
}

QualityContext CutContext(const QualityDocument& document, int32_t length, const ContextCut& cut) {
  const std::span<const int32_t> text = document.tokens;
  const auto part = [&](int32_t begin, int32_t size) {
    const auto own = text.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
    return std::vector<int32_t>(own.begin(), own.end());
  };
  QualityContext result;
  result.shared = document.copy ? length - TailTokens(cut) : length;
  result.context = part(0, result.shared);
  if (!document.copy) {
    result.continuation = part(length, cut.continuation);
    return result;
  }
  const std::vector<int32_t> cue = part(kPassageBegin, kCueTokens);
  result.context.insert(result.context.end(), cut.marker.begin(), cut.marker.end());
  result.context.insert(result.context.end(), cue.begin(), cue.end());
  result.continuation = part(kPassageBegin + kCueTokens, cut.continuation);
  return result;
}

int32_t LeastCopyContext(const ContextCut& cut, uint32_t window) {
  const int32_t behind = std::max(static_cast<int32_t>(window), TailTokens(cut));
  return kPassageBegin + kCueTokens + cut.continuation + behind;
}

std::vector<int32_t> ContextLengths(std::span<const int32_t> asked, int32_t continuation, int64_t exempt,
                                    int32_t trained_context) {
  std::vector<int32_t> lengths;
  for (const int32_t length : asked) {
    if (length > trained_context || continuation >= trained_context) {
      throw Failure("a context of " + std::to_string(length) + " tokens and " + std::to_string(continuation) +
                    " after it are more than the model's context of " + std::to_string(trained_context));
    }
    lengths.push_back(std::min(length, trained_context - continuation));
    if (exempt >= lengths.back()) {
      throw Failure("--sinks and --window leave nothing to code: " + std::to_string(exempt) + " of " +
                    std::to_string(lengths.back()) + " tokens are exempt");
    }
  }
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

}  // namespace kvt::cli
