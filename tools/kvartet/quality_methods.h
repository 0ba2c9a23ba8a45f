// The methods that `kvartet quality` measures, as the user names them. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_METHODS_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_METHODS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kvt::cli {

// A codec by name, and its ratio where it has one: "kivi4", "transform@16".
struct QualityMethod {
  std::string label;
  std::string codec;
  uint32_t ratio = 0;  // 0: the codec has none

  bool NeedsProfile() const { return ratio != 0; }
};

// Throws Failure that names the method: without a name, with a ratio that is not a whole number or that the
// codec does not take, or named twice. A name that no codec has shows when the codec is made.
std::vector<QualityMethod> ParseMethods(const std::vector<std::string>& texts);

// Where the codec's method was published, for example "KIVI, arXiv 2402.02750"; empty when it is our own or
// nobody's.
std::string PublishedAs(const std::string& codec);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_METHODS_H_
