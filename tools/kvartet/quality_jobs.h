// Measures the documents of a run, several at the same time. Threads: one caller.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_JOBS_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_JOBS_H_

#include <span>
#include <string>
#include <vector>

#include "kvartet/progress_line.h"
#include "kvartet/quality_measure.h"
#include "kvartet/quality_state.h"

namespace kvt::cli {

// Samples in the order of the documents, whatever the number of jobs; those that the state has are not
// measured again. Throws the Failure that was first, once all jobs have stopped.
std::vector<DocumentSample> MeasureDocuments(const QualityPlan& plan,
                                             std::span<const QualityDocument> documents, QualityState* state,
                                             ProgressLine* progress);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_JOBS_H_
