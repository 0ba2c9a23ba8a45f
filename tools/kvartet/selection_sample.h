// What one measurement of `kvartet select` finds out. Threads: values.
#ifndef KVARTET_TOOLS_KVARTET_SELECTION_SAMPLE_H_
#define KVARTET_TOOLS_KVARTET_SELECTION_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kvt::cli {

inline constexpr char kPrefillStage[] = "after prefill";
inline constexpr char kLongStage[] = "long generation";

// A method with a budget on a document.
struct SelectionSample {
  std::string stage;  // kPrefillStage or kLongStage
  std::string method;
  int32_t budget_percent = 0;
  int32_t budget = 0;      // in tokens, those included that always stay
  int32_t cells = 0;       // that the engine held after the last thinning
  int32_t of = 0;          // tokens that the full cache held then
  int32_t most_cells = 0;  // that the engine held at any time from the first thinning on
  int32_t thinnings = 0;
  int32_t outputs = 0;       // tokens that are compared
  double kl = 0;             // mean over them
  double same_choice = 0;    // share of them whose first choice is the full cache's
  int32_t equal_prefix = 0;  // tokens of greedy output that are the full cache's
  double select_ms = 0;      // of one thread's processor time for each thinning, the mean
  double drop_ms = 0;        // the same for the engine's part of it
};

struct SelectionDocument {
  std::string name;
  bool thresholds = false;               // the sparsities of thoughts had three modes
  double repeated = 0;                   // share of the long output that repeats itself
  std::vector<SelectionSample> samples;  // the same stages, methods and budgets for every document
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_SELECTION_SAMPLE_H_
