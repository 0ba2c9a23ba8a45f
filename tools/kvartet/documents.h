// Texts for calibration and for measuring quality: files are read, checked and cut into documents of tokens.
#ifndef KVARTET_TOOLS_KVARTET_DOCUMENTS_H_
#define KVARTET_TOOLS_KVARTET_DOCUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace kvt::cli {

// No more of a file is read (of its text, when it is compressed).
inline constexpr size_t kMaxTextBytes = size_t{4} << 20;

// The text of a file, gzip'd or not; of a longer one the first kMaxTextBytes, cut at a character. Throws
// Failure with path and reason: cannot be read, damaged, empty, binary (a NUL byte), not UTF-8 (with the
// offset).
std::string ReadText(const std::string& path);

struct TextDocument {
  std::string name;   // the file's name; "#2" and so on after it for its further documents
  int32_t index = 0;  // among the documents of its file
  std::vector<int32_t> tokens;
};

struct DocumentCut {  // min_tokens 16 or more, max_tokens no less
  int32_t min_tokens = 1000;
  int32_t max_tokens = 2000;
  int32_t per_file = 1;  // most documents of one file
};

// Cuts each text from its beginning into documents of max_tokens; what is left at its end is a document when
// it has min_tokens. Documents are in the order of `paths`, and all begin with what the model wants at a
// beginning. Throws Failure as ReadText, and with path and counts when a text has fewer than min_tokens.
std::vector<TextDocument> ReadDocuments(const engine::Engine& engine, std::span<const std::string> paths,
                                        const DocumentCut& cut);

// FilesIn a folder of texts that ./bootstrap deps collects. Throws Failure when there are none.
std::vector<std::string> CollectedTexts(const std::string& folder);

// Keeps the first `count` files, the value of --documents; 0: all. Throws Failure when there are fewer.
void KeepFirst(int32_t count, std::vector<std::string>* files);

// The regular files of a folder, sorted by name; empty when there is no such folder.
std::vector<std::string> FilesIn(const std::string& folder);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_DOCUMENTS_H_
