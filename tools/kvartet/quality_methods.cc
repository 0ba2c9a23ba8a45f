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
constexpr RatioCodec kRatioCodecs[] = {{"transform", 4, 32, 16}, {"dense", 8, 96, 20}, {"kvtc", 4, 96, 16}};

const RatioCodec* FindRatioCodec(std::string_view name) {
  const auto* found = std::find_if(std::begin(kRatioCodecs), std::end(kRatioCodecs),
                                   [&](const RatioCodec& codec) { return codec.name == name; });
  return found == std::end(kRatioCodecs) ? nullptr : found;
}

// The ratio of "name@ratio".
uint32_t ParseRatio(const std::string& text, std::string_view digits, const RatioCodec& codec) {
  uint32_t ratio = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ratio);
  if (error != std::errc() || rest != digits.data() + digits.size() || ratio < codec.least ||
      ratio > codec.most) {
    throw Failure("--methods: '" + text + "': the ratio must be a whole number from " +
                  std::to_string(codec.least) + " to " + std::to_string(codec.most));
  }
  return ratio;
}

// The words after a colon, joined by plus signs.
void ParseWords(const std::string& text, std::string_view words, QualityMethod* method) {
  constexpr char kWords[] = "raw, int8 or finer, plain, and scalar";
  if (method->codec != "dense")
    throw Failure("--methods: '" + text + "': the codec " + method->codec + " takes no words");
  bool exempt = false;
  while (true) {
    const std::string_view word = words.substr(0, words.find('+'));
    if (word == "plain" && method->importance) {
      method->importance = false;
    } else if (word == "scalar" && method->quantiser == 0) {
      method->quantiser = KVT_QUANTISER_SCALAR;
    } else if ((word == "raw" || word == "int8" || word == "finer") && !exempt) {
      exempt = true;
      method->exempt = word == "raw" ? KVT_EXEMPT_RAW : word == "int8" ? KVT_EXEMPT_INT8 : KVT_EXEMPT_FINER;
    } else {
      throw Failure("--methods: '" + text + "': the words after the colon must be " + kWords);
    }
    if (word.size() == words.size()) return;
    words.remove_prefix(word.size() + 1);
  }
}

std::string Label(const QualityMethod& method) {
  std::string label = method.codec;
  if (method.ratio != 0) label += "@" + std::to_string(method.ratio);
  char before = ':';
  const auto add = [&](const char* word) {
    label += before;
    label += word;
    before = '+';
  };
  if (method.exempt == KVT_EXEMPT_INT8) add("int8");
  if (method.exempt == KVT_EXEMPT_FINER) add("finer");
  if (method.codec == "dense" && !method.importance) add("plain");
  if (method.quantiser == KVT_QUANTISER_SCALAR) add("scalar");
  return label;
}

QualityMethod ParseMethod(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string head = text.substr(0, colon);
  const size_t at = head.find('@');
  QualityMethod method;
  method.codec = head.substr(0, at);
  if (method.codec.empty()) throw Failure("--methods: '" + text + "' names no codec");
  const RatioCodec* codec = FindRatioCodec(method.codec);
  if (at != std::string::npos) {
    if (codec == nullptr)
      throw Failure("--methods: '" + text + "': the codec " + method.codec + " takes no ratio");
    method.ratio = ParseRatio(text, std::string_view(head).substr(at + 1), *codec);
  } else if (codec != nullptr) {
    method.ratio = codec->usual;
  }
  if (method.codec == "dense") {
    method.exempt = KVT_EXEMPT_RAW;
    method.importance = true;
  }
  if (colon < text.size()) ParseWords(text, std::string_view(text).substr(colon + 1), &method);
  method.label = Label(method);
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
