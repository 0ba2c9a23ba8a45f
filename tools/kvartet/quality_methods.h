// The methods that `kvartet quality` measures, as the user names them. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_METHODS_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_METHODS_H_

#include <kvartet/codec.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kvt::cli {

// A codec by name, its ratio where it has one, and for dense words after a colon: "kivi4", "transform@16",
// "dense@40:finer+plain+scalar".
struct QualityMethod {
  std::string label;
  std::string codec;
  uint32_t ratio = 0;       // 0: the codec has none
  uint32_t exempt = 0;      // KVT_EXEMPT_*; 0: the codec has no choice
  uint32_t quantiser = 0;   // KVT_QUANTISER_*; 0: the codec's own
  bool importance = false;  // tokens are told apart by importance

  bool NeedsProfile() const { return ratio != 0; }
  bool KeepsExemptRaw() const { return exempt == 0 || exempt == KVT_EXEMPT_RAW; }
};

// Of dense, exempt tokens are raw, as with other codecs, unless a word says int8 or finer, importance is used
// unless a word says plain, and the trellis unless a word says scalar. Throws Failure that names the method:
// without a name, with a ratio that is not a whole number or that the codec does not take, with words that it
// does not take, or named twice. A name that no codec has shows when the codec is made.
std::vector<QualityMethod> ParseMethods(const std::vector<std::string>& texts);

// Where the codec's method was published, for example "KIVI, arXiv 2402.02750"; empty when it is our own or
// nobody's.
std::string PublishedAs(const std::string& codec);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_METHODS_H_
