// What `kvartet quality` reports, as Markdown, as JSON and as a page. Threads: any.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_REPORT_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_REPORT_H_

#include <string>

#include "kvartet/channel.h"
#include "kvartet/quality_summary.h"

namespace kvt::cli {

std::string ToMarkdown(const QualityReport& report);
Json ToJson(const QualityReport& report);
// One page with the curves of size against loss drawn, without outside references.
std::string ToHtml(const QualityReport& report);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_REPORT_H_
