// The tables of a report, as Markdown and as HTML. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_TABLES_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_TABLES_H_

#include <string>
#include <vector>

#include "kvartet/quality_summary.h"

namespace kvt::cli {

struct Table {
  std::string title;  // may be empty
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // the first cell of each names it
};

// What was measured on what, in a paragraph.
std::string Conditions(const QualityReport& report);

// For each context length the methods, then KL document by document; with several lengths or copy probes a
// table of published methods across lengths.
std::vector<Table> QualityTables(const QualityReport& report);

std::string TableToMarkdown(const Table& table);
std::string TableToHtml(const Table& table);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_TABLES_H_
