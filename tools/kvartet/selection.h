// `kvartet select`: which tokens keep their KV, on the real engine, and what the others' absence does.
//
// Two stages of each text. After a prefill, the sequence is thinned once to its budget. During a long
// generation from a short prompt, it is thinned again and again. Either way the engine drops the cells of the
// other tokens, and what its logits are from then on, along the greedy output of the full cache, is compared
// with those of the full cache.
#ifndef KVARTET_TOOLS_KVARTET_SELECTION_H_
#define KVARTET_TOOLS_KVARTET_SELECTION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kvt::cli {

struct SelectionSettings {
  std::string model;
  std::string deps;                     // the folder of downloads
  std::vector<std::string> files;       // empty: the texts of scripts/texts/quality.txt
  int32_t documents = 0;                // the first so many; 0: all
  std::vector<int32_t> budgets = {25};  // percent of the context, or of the long output, that stays
  int32_t context = 1536;     // first tokens of a text, which are prefilled; a shorter text is taken whole
  int32_t tokens = 128;       // of output after it
  int32_t prompt = 256;       // first tokens of a text that a long output follows; all but the last stay
  int32_t long_tokens = 768;  // of long output; 0: none
  int32_t every = 128;        // tokens of it between thinnings
  int32_t sinks = 4;          // first tokens of the context that always stay
  int32_t window = 32;        // last tokens that always stay, and whose queries judge the others
  int32_t threads = 1;        // of the engine
  std::string json;
};

// Where it is known to fail, in a line.
inline constexpr char kSelectionWarning[] =
    "Selection fails where a question comes later than it, where blocks are shared by prefix, and where one "
    "choice serves several sequences of a batch: each is judged by its own last queries, and what was "
    "dropped "
    "is gone.";

// Returns the exit status. Throws Failure.
int RunSelection(const SelectionSettings& settings);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_SELECTION_H_
