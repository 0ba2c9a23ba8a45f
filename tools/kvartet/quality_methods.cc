#include "kvartet/quality_methods.h"

#include <algorithm>
#include <charconv>

#include "kvartet/library.h"

namespace kvt::cli {
namespace {

constexpr uint32_t kLeastRatio = 4, kMostRatio = 32, kDefaultRatio = 16;

QualityMethod ParseMethod(const std::string& text) {
  const size_t at = text.find('@');
  QualityMethod method;
  method.codec = text.substr(0, at);
  if (method.codec.empty()) throw Failure("--methods: '" + text + "' names no codec");
  if (at != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + at + 1, end, method.ratio);
    if (error != std::errc() || rest != end || method.ratio < kLeastRatio || method.ratio > kMostRatio) {
      throw Failure("--methods: '" + text + "': the ratio must be a whole number from " +
                    std::to_string(kLeastRatio) + " to " + std::to_string(kMostRatio));
    }
    if (!method.NeedsProfile())
      throw Failure("--methods: '" + text + "': the codec " + method.codec + " takes no ratio");
  } else if (method.NeedsProfile()) {
    method.ratio = kDefaultRatio;
  }
  method.label = method.codec + (method.ratio == 0 ? "" : "@" + std::to_string(method.ratio));
  return method;
}

}  // namespace

std::vector<QualityMethod> ParseMethods(const std::vector<std::string>& texts) {
  if (texts.empty()) throw Failure("--methods: names no codec");
  std::vector<QualityMethod> methods;
  for (const std::string& text : texts) {
    QualityMethod method = ParseMethod(text);
    const auto same = [&](const QualityMethod& other) { return other.label == method.label; };
    if (std::any_of(methods.begin(), methods.end(), same))
      throw Failure("--methods: " + method.label + " is named twice");
    methods.push_back(std::move(method));
  }
  return methods;
}

}  // namespace kvt::cli
