// kvt_bench [AREA] [--json FILE] [--markdown FILE]: runs the benchmarks of an area (all without one), prints
// and writes the bars.
#include <kvartet/kvartet.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/bench.h"

namespace kvt::bench {
namespace {

struct Entry {
  std::string area, name;
  Function function;
};

// Filled before main by the registrations.
std::vector<Entry>& Entries() {
  static std::vector<Entry> entries;
  return entries;
}

std::string FieldOf(const char* file, const std::string& field) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field, 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "";
}

double LoadAverage() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

nlohmann::ordered_json Machine() {
  utsname name;
  uname(&name);
  return {{"cpu", FieldOf("/proc/cpuinfo", "model name")},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory", FieldOf("/proc/meminfo", "MemTotal")},
          {"kernel", name.release},
          {"compiler", __VERSION__},
          {"kvartet", kvt_version_string()}};
}

nlohmann::ordered_json ToJson(const Bar& bar, double load) {
  nlohmann::ordered_json json = {{"name", bar.name}, {"value", bar.value}, {"unit", bar.unit},
                                 {"op", bar.op},     {"bar", bar.bar},     {"ok", bar.ok()}};
  json["peer"] = bar.peer ? nlohmann::ordered_json{{"name", bar.peer->name}, {"value", bar.peer->value}}
                          : nlohmann::ordered_json(nullptr);
  json["rounds"] = bar.rounds;
  json["spread"] = bar.spread;
  json["load"] = load;
  json["note"] = bar.note;
  return json;
}

std::string ToMarkdown(const Bar& bar) {
  char line[1024];
  std::snprintf(line, sizeof line, "| `%s` | %.4g %s | %s %.4g | %s | %s %.4g | %d | %.0f %% | %s |\n",
                bar.name.c_str(), bar.value, bar.unit.c_str(), bar.op.c_str(), bar.bar,
                bar.op.empty() ? "reported" : (bar.ok() ? "yes" : "**no**"),
                bar.peer ? bar.peer->name.c_str() : "-", bar.peer ? bar.peer->value : 0.0, bar.rounds,
                bar.spread * 100, bar.note.c_str());
  return line;
}

int Main(int argc, char** argv) {
  std::string area, only, json_path, markdown_path;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--json" && i + 1 < argc) {
      json_path = argv[++i];
    } else if (arg == "--markdown" && i + 1 < argc) {
      markdown_path = argv[++i];
    } else if (arg == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else if (arg[0] != '-' && area.empty()) {
      area = arg;
    } else {
      Fail("usage: kvt_bench [AREA] [--only BENCH] [--json FILE] [--markdown FILE]; not understood: " + arg);
    }
  }
  const auto& entries = Entries();
  const auto wanted = [&](const Entry& entry) {
    return (area.empty() || entry.area == area) && (only.empty() || entry.name == only);
  };
  if (std::none_of(entries.begin(), entries.end(), wanted))
    Fail("no bench " + only + (area.empty() ? "" : " in area " + area));
  nlohmann::ordered_json report = {
      {"schema", 1}, {"machine", Machine()}, {"bars", nlohmann::ordered_json::array()}};
  std::string markdown =
      "| bar | value | bar | met | peer | rounds | spread | figures |\n|---|---|---|---|---|---|---|---|\n";
  bool all_ok = true;
  for (const Entry& entry : entries) {
    if (!wanted(entry)) continue;
    std::fprintf(stderr, "bench: %s ...\n", entry.name.c_str());
    const double load = LoadAverage();
    for (const Bar& bar : entry.function()) {
      report["bars"].push_back(ToJson(bar, load));
      markdown += ToMarkdown(bar);
      all_ok = all_ok && bar.ok();
    }
  }
  std::fputs(markdown.c_str(), stdout);
  if (!json_path.empty() && !(std::ofstream(json_path) << report.dump(2) << "\n"))
    Fail("cannot write " + json_path);
  if (!markdown_path.empty() && !(std::ofstream(markdown_path) << markdown))
    Fail("cannot write " + markdown_path);
  return all_ok ? 0 : 1;
}

}  // namespace

Registration::Registration(const char* area, const char* name, Function function) {
  Entries().push_back({area, name, function});
}

}  // namespace kvt::bench

int main(int argc, char** argv) { return kvt::bench::Main(argc, argv); }
