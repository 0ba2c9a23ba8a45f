#include "kvartet/quality_methods.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "kvartet/library.h"

namespace kvt::cli {
namespace {

// Codecs that take a ratio, which are those with a profile.
struct RatioCodec {
  std::string_view name;
  uint32_t least, most, usual;
};
constexpr RatioCodec kRatioCodecs[] = {{"transform", 4, 32, 16}, {"dense", 8, 96, 20}, {"kvtc", 4, 64, 16}};

const RatioCodec* FindRatioCodec(std::string_view name) {
  const auto* found = std::find_if(std::begin(kRatioCodecs), std::end(kRatioCodecs),
                                   [&](const RatioCodec& codec) { return codec.name == name; });
  return found == std::end(kRatioCodecs) ? nullptr : found;
}

QualityMethod ParseMethod(const std::string& text) {
  const size_t at = text.find('@');
  QualityMethod method;
  method.codec = text.substr(0, at);
  if (method.codec.empty()) throw Failure("--methods: '" + text + "' names no codec");
  const RatioCodec* codec = FindRatioCodec(method.codec);
  if (at != std::string::npos) {
    if (codec == nullptr)
      throw Failure("--methods: '" + text + "': the codec " + method.codec + " takes no ratio");
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + at + 1, end, method.ratio);
    if (error != std::errc() || rest != end || method.ratio < codec->least || method.ratio > codec->most) {
      throw Failure("--methods: '" + text + "': the ratio must be a whole number from " +
                    std::to_string(codec->least) + " to " + std::to_string(codec->most));
    }
  } else if (codec != nullptr) {
    method.ratio = codec->usual;
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

std::string PublishedAs(const std::string& codec) {
  constexpr std::pair<std::string_view, const char*> kPapers[] = {
      {"kivi", "KIVI, arXiv 2402.02750"},
      {"rotated", "TurboQuant, arXiv 2504.19874"},
      {"kvtc", "KVTC, arXiv 2511.01815"},
      {"cachegen", "CacheGen, arXiv 2310.07240"},
  };
  for (const auto& [prefix, paper] : kPapers) {
    if (codec.starts_with(prefix)) return paper;
  }
  return "";
}

}  // namespace kvt::cli
