// What `kvartet quality` gives the engine: contexts of several lengths out of one document, and the tokens
// that follow them. Threads: pure functions.
//
// A copy probe asks for an early passage again. Its context of L tokens is the text's first tokens, then a
// marker that announces a repetition, then kCueTokens tokens from kPassageBegin on, L tokens in all; its
// continuation is what followed those tokens the first time. A model that copies finds all that it needs in
// rows far behind the recent window.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_CONTEXTS_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_CONTEXTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvartet/documents.h"

namespace kvt::cli {

inline constexpr int32_t kPassageBegin = 64;  // token of the text at which the repeated passage begins
inline constexpr int32_t kCueTokens = 16;     // of the passage, which the context's end repeats
inline constexpr char kCopyMarker[] =
    "\n\n---\n\nAn earlier passage of this text, repeated word for word:\n\n";

struct QualityDocument {
  std::string name;
  bool copy = false;  // a copy probe is made of it
  std::vector<int32_t> tokens;
};

struct QualityContext {
  std::vector<int32_t> context;
  std::vector<int32_t> continuation;
  int32_t shared = 0;  // the context's first tokens that are the document's
};

// How the documents of a run are cut.
struct ContextCut {
  std::vector<int32_t> lengths;  // of contexts, in descending order
  int32_t continuation = 0;
  std::vector<int32_t> marker;  // kCopyMarker in tokens
};

// Whether a list names this file as a copy probe: NN-copy-KIND-PACKAGE-FILE.
bool IsCopyProbe(const std::string& file_name);

// Whether the document has enough tokens for this length.
bool HasContext(const QualityDocument& document, int32_t length, const ContextCut& cut);

// `length` is one that HasContext allows.
QualityContext CutContext(const QualityDocument& document, int32_t length, const ContextCut& cut);

// The fewest tokens that a context of a copy probe has: its passage is neither in the recent window nor among
// the first tokens that are exempt.
int32_t LeastCopyContext(const ContextCut& cut, uint32_t window);

// Context lengths in descending order, each once. A length whose continuation would leave the model's context
// is cut so that it does not. Throws Failure when a length is longer than the model's context, or leaves
// nothing to code.
std::vector<int32_t> ContextLengths(std::span<const int32_t> asked, int32_t continuation, int64_t exempt,
                                    int32_t trained_context);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_CONTEXTS_H_
