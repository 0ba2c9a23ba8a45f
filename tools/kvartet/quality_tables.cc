#include "kvartet/quality_tables.h"

#include <algorithm>
#include <cstdio>

#include "kvartet/html.h"

namespace kvt::cli {
namespace {

std::string Format(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Kl(double value) { return Format("%.4f", value); }

std::string Range(const std::optional<Interval>& interval, double least) {
  if (!interval) return "";
  return " [" + Kl(std::max(interval->low, least)) + ", " + Kl(interval->high) + "]";
}

// Digits in groups of three: "10,000".
std::string Grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string Code(const std::string& label) { return "`" + label + "`"; }

std::string Mebibytes(uint64_t bytes) { return Format("%.1f", static_cast<double>(bytes) / (1 << 20)); }

std::string Memory(const std::optional<MethodMemory>& memory) {
  if (!memory) return "unknown";
  return Mebibytes(memory->codec) + " / " + Mebibytes(memory->encode) + " / " + Mebibytes(memory->decode);
}

std::string PaysBelow(const MethodSummary& method) {
  const double gbits = method.PaysBelowGbits();
  return gbits > 0 ? Format("%.2f", gbits) : "never";
}

bool IsLong(const QualityReport& report) { return report.settings.full || report.contexts.size() > 1; }

std::string Title(const QualityReport& report, const std::string& text, int32_t context) {
  if (report.contexts.size() == 1) return "";
  return text + " at " + Grouped(context) + " tokens";
}

Table Methods(const QualityReport& report, int32_t context) {
  const bool full = report.settings.full;
  const bool copies = HasCopies(report);
  const std::string base = report.methods[BasePlace(report)].label;
  Table table{
      Title(report, "Methods", context), {"method", "whole", "coded", "1 / 100 / 10,000 contexts"}, {}};
  const auto head = [&](bool wanted, std::initializer_list<const char*> names) {
    if (wanted) table.head.insert(table.head.end(), names.begin(), names.end());
  };
  head(true, {"KL", ("more KL than " + base).c_str(), "same first choice %", "perplexity %"});
  head(copies, {"copy KL", "copy: same first choice %"});
  head(full, {"equal prefix", "memory MiB"});
  head(!report.mflop.is_null(), {"MFLOP/token"});
  head(true, {"encode us/token (GB/s)", "decode us/token (GB/s)"});
  for (const MethodSummary& method : Summarise(report, context)) {
    std::string amortised;
    for (const double ratio : method.amortised)
      amortised += (amortised.empty() ? "" : " / ") + Format("%.2f", ratio);
    std::vector<std::string> row = {Code(method.label), Format("%.2f", method.whole_ratio),
                                    Format("%.2f", method.coded_ratio), amortised};
    if (method.texts == 0) {
      row.insert(row.end(), 4, "-");
    } else {
      row.push_back(Kl(method.kl) + Range(method.kl_interval, 0));
      row.push_back(Format("%+.4f", method.more_kl) + Range(method.more_kl_interval, -1e9));
      row.push_back(Format("%.1f", method.same_percent));
      row.push_back(Format("%+.2f", method.perplexity_percent));
    }
    if (copies && method.copies == 0) row.insert(row.end(), 2, "-");
    if (method.copies != 0) {
      row.push_back(Kl(method.copy_kl) + Range(method.copy_kl_interval, 0));
      row.push_back(Format("%.1f", method.copy_same_percent));
    }
    if (full) {
      row.push_back((method.texts == 0 ? "-" : Format("%.1f", method.equal_prefix)) +
                    (method.copies == 0 ? "" : " / " + Format("%.1f", method.copy_equal_prefix)));
      row.push_back(Memory(method.memory));
    }
    if (!report.mflop.is_null()) row.push_back(method.mflop ? Format("%.1f", *method.mflop) : "-");
    row.push_back(Format("%.1f", method.encode_us) + " (" + Format("%.2f", method.encode_gbs) + ")");
    row.push_back(Format("%.1f", method.decode_us) + " (" + Format("%.2f", method.decode_gbs) + ")");
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table Documents(const QualityReport& report, int32_t context) {
  Table table{Title(report, "KL of each document", context), {"KL of document"}, {}};
  for (const QualityMethod& method : report.methods) table.head.push_back(Code(method.label));
  for (const DocumentSample& document : report.documents) {
    if (document.context != context) continue;
    std::vector<std::string> row = {document.name};
    for (const MethodSample& sample : document.methods) row.push_back(Kl(sample.kl));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// One row a method, what users of a cache look for at each length: the comparison of arXiv 2607.05399 has
// these columns for its methods.
Table Published(const QualityReport& report) {
  Table table{"Published methods, and ours", {"method", "published as"}, {}};
  for (const char* column : {"ratio", "KL", "perplexity %", "ms a context", "pays below Gbit/s"}) {
    for (const int32_t context : report.contexts)
      table.head.push_back(std::string(column) + " @" + Grouped(context));
  }
  std::vector<std::vector<MethodSummary>> summaries;
  for (const int32_t context : report.contexts) summaries.push_back(Summarise(report, context));
  for (size_t i = 0; i < report.methods.size(); ++i) {
    const std::string paper = PublishedAs(report.methods[i].codec);
    std::vector<std::string> row = {Code(report.methods[i].label), paper.empty() ? "-" : paper};
    const auto each = [&](const auto& cell) {
      for (const std::vector<MethodSummary>& methods : summaries)
        row.push_back(methods.empty() ? "-" : cell(methods[i]));
    };
    each([](const MethodSummary& m) { return Format("%.2f", m.whole_ratio); });
    each([](const MethodSummary& m) { return m.texts == 0 ? "-" : Kl(m.kl); });
    each([](const MethodSummary& m) { return m.texts == 0 ? "-" : Format("%+.2f", m.perplexity_percent); });
    each(
        [](const MethodSummary& m) { return Format("%.0f", (m.encode_us + m.decode_us) * m.context / 1e3); });
    each(PaysBelow);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string Conditions(const QualityReport& report) {
  const QualitySettings& settings = report.settings;
  std::string lengths;
  for (const int32_t context : report.contexts)
    lengths += (lengths.empty() ? "" : " or ") + std::to_string(context);
  size_t names = 0, copies = 0;
  for (const DocumentSample& document : report.documents) {
    if (document.context != report.contexts.front()) continue;  // every document has the shortest length
    ++names;
    copies += document.copy ? 1 : 0;
  }
  std::string text = "Model " + report.model + "; weights: " + report.weights + ". " + std::to_string(names) +
                     " documents of " + lengths + " tokens, of which the first " +
                     std::to_string(settings.sinks) + " and the last " + std::to_string(settings.window) +
                     " are exempt; the next " + std::to_string(settings.continuation) +
                     " tokens are scored. KL in nats a token, with the 95 % interval over documents.";
  if (copies != 0)
    text +=
        " " + std::to_string(copies) + " of the documents are copy probes, which have columns of their own.";
  if (!report.profile.empty()) {
    text += " Profile " + report.profile + ", " + std::to_string(report.profile_bytes) +
            " bytes, counted in the ratios of 1, 100 and 10,000 contexts.";
  }
  if (settings.full) {
    text += " Equal prefix: tokens of greedy output that are the full cache's, of " +
            std::to_string(settings.continuation) + ", after texts" +
            (copies != 0 ? " / after copy probes" : "") +
            ". Memory: what the codec keeps / takes more to encode one context / to decode it.";
  }
  return text + " Times: processor time of one thread, the fastest of " + std::to_string(settings.repeat) +
         " and of all documents.";
}

std::vector<Table> QualityTables(const QualityReport& report) {
  std::vector<Table> tables;
  for (const int32_t context : report.contexts) tables.push_back(Methods(report, context));
  if (IsLong(report)) tables.push_back(Published(report));
  for (const int32_t context : report.contexts) tables.push_back(Documents(report, context));
  return tables;
}

std::string TableToMarkdown(const Table& table) {
  std::string out = table.title.empty() ? "" : "### " + table.title + "\n\n";
  const auto line = [&](const std::vector<std::string>& cells) {
    out += "|";
    for (const std::string& cell : cells) out += " " + cell + " |";
    out += "\n";
  };
  line(table.head);
  out += "|";
  for (size_t i = 0; i < table.head.size(); ++i) out += "---|";
  out += "\n";
  for (const std::vector<std::string>& row : table.rows) line(row);
  return out;
}

std::string TableToHtml(const Table& table) {
  std::string out = table.title.empty() ? "" : "<h3>" + EscapeHtml(table.title) + "</h3>\n";
  const auto line = [&](const std::vector<std::string>& cells, const char* begin, const char* end) {
    out += "<tr>";
    for (std::string cell : cells) {
      std::erase(cell, '`');
      out.append(begin).append(EscapeHtml(cell)).append(end);
    }
    out += "</tr>\n";
  };
  out += "<table>";
  line(table.head, "<th>", "</th>");
  for (const std::vector<std::string>& row : table.rows) line(row, "<td>", "</td>");
  return out + "</table>\n";
}

}  // namespace kvt::cli
