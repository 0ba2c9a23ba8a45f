#include "base/url.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace kvt {
namespace {

struct Unit {
  absl::string_view name;
  double bytes;
};
constexpr Unit kSizes[] = {
    {"", 1},      {"B", 1},        {"KB", 1e3},        {"MB", 1e6},           {"GB", 1e9},
    {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
constexpr Unit kRates[] = {
    {"bit", 1.0 / 8}, {"Kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"Tbit", 1e12 / 8}};

StatusOr<uint64_t> Scaled(absl::string_view text, absl::string_view what, absl::Span<const Unit> units) {
  const size_t digits =
      std::find_if(text.begin(), text.end(), [](char c) { return !absl::ascii_isdigit(c) && c != '.'; }) -
      text.begin();
  double number = 0;
  const absl::string_view unit = text.substr(digits);
  const auto found =
      std::find_if(units.begin(), units.end(), [unit](const Unit& u) { return u.name == unit; });
  if (digits == 0 || !absl::SimpleAtod(text.substr(0, digits), &number) || found == units.end() ||
      !(number * found->bytes < 9e18)) {
    std::string known;
    for (const Unit& u : units) absl::StrAppend(&known, known.empty() || u.name.empty() ? "" : ", ", u.name);
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat(what, " \"", text, "\" is not a number with one of the units ", known));
  }
  return static_cast<uint64_t>(std::llround(number * found->bytes));
}

}  // namespace

StatusOr<uint64_t> ParseSize(absl::string_view text) { return Scaled(text, "size", kSizes); }

StatusOr<uint64_t> ParseRate(absl::string_view text) {
  if (absl::EndsWith(text, "bit")) return Scaled(text, "rate", kRates);
  return Scaled(absl::StripSuffix(text, "/s"), "rate", kSizes);
}

StatusOr<Url> Url::Parse(absl::string_view text) {
  Url url;
  if (text.size() > 4096)
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("url has ", text.size(), " bytes, the most is 4096"));
  if (absl::StrContains(text, '\0')) return Error(KVT_ERR_INVALID_ARGUMENT, "url contains a zero byte");
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos || colon == 0)
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("url \"", text, "\" has no scheme such as mem: or file:"));
  url.scheme = absl::AsciiStrToLower(text.substr(0, colon));
  text.remove_prefix(colon + 1);
  const size_t question = text.find('?');
  absl::string_view rest = text.substr(0, question);
  if (url.scheme != "file" && url.scheme != "unix") {
    absl::ConsumePrefix(&rest, "//");
  } else if (absl::StartsWith(rest, "//")) {
    // file:///path and file:/path are the same place; file://path would name a host, or a relative path by
    // accident.
    rest.remove_prefix(2);
    if (!absl::StartsWith(rest, "/")) {
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("url path \"//", rest, "\" has no third slash; write ", url.scheme,
                                ":/path or ", url.scheme, ":relative/path"));
    }
  }
  url.rest = std::string(rest);
  if (question == absl::string_view::npos) return url;
  for (absl::string_view pair : absl::StrSplit(text.substr(question + 1), '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> option = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    if (option.first.empty() || !url.options.insert(option).second)
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("url option \"", pair, "\" is empty or given twice"));
  }
  return url;
}

Status Url::CheckOptions(std::initializer_list<absl::string_view> known) const {
  for (const auto& [key, value] : options) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("url option \"", key, "=", value, "\" is not known for ", scheme, ":"));
  }
  return OkStatus();
}

StatusOr<uint64_t> Url::Size(const std::string& key, uint64_t fallback) const {
  const auto found = options.find(key);
  if (found == options.end()) return fallback;
  auto size = ParseSize(found->second);
  if (!size.ok()) return Annotate(size.status(), absl::StrCat("url option ", key));
  return size;
}

StatusOr<uint64_t> Url::BytesPerSecond(const std::string& key, uint64_t fallback) const {
  const auto found = options.find(key);
  if (found == options.end()) return fallback;
  auto rate = ParseRate(found->second);
  if (!rate.ok()) return Annotate(rate.status(), absl::StrCat("url option ", key));
  return rate;
}

StatusOr<bool> Url::Flag(const std::string& key) const {
  const auto found = options.find(key);
  if (found == options.end() || found->second == "0") return false;
  if (found->second == "1") return true;
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat("url option \"", key, "=", found->second, "\" is neither 0 nor 1"));
}

}  // namespace kvt
