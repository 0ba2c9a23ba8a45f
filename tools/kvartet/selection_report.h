// What `kvartet select` reports, as Markdown and as JSON. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_SELECTION_REPORT_H_
#define KVARTET_TOOLS_KVARTET_SELECTION_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvartet/channel.h"
#include "kvartet/quality_metrics.h"
#include "kvartet/selection.h"
#include "kvartet/selection_sample.h"

namespace kvt::cli {

struct SelectionReport {
  SelectionSettings settings;
  std::string model;  // as the engine words it
  std::string weights_sha256;
  uint64_t token_bytes = 0;  // of KV
  std::vector<SelectionDocument> documents;
};

// A method with a budget in a stage, over all documents. Means, but for the share.
struct SelectionSummary {
  std::string stage, method;
  int32_t budget_percent = 0;
  double cells = 0, most_cells = 0, kept_bytes = 0;
  double share_percent = 0;  // cells of all documents over those of the full caches
  double kl = 0;
  std::optional<Interval> kl_interval;
  double more_kl = 0;  // than the first method of the stage with this budget, document by document
  std::optional<Interval> more_kl_interval;
  double same_percent = 0;
  double equal_prefix = 0, outputs = 0;
  double thinnings = 0, select_ms = 0, drop_ms = 0;
};

// In the order of a document's samples. `documents` is not empty.
std::vector<SelectionSummary> Summarise(const SelectionReport& report);

// With kSelectionWarning as its last line.
std::string ToMarkdown(const SelectionReport& report);
Json ToJson(const SelectionReport& report);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_SELECTION_REPORT_H_
