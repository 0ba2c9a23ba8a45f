#include "kvartet/documents.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "kvartet/library.h"

namespace kvt::cli {
namespace {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};

// The bytes of the character that begins at `text`, or 0 when none does. `left` is at least 1.
size_t CharacterBytes(const unsigned char* text, size_t left) {
  const unsigned char lead = text[0];
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || left < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what is beyond the last code point show in the second byte.
  if ((lead == 0xe0 && text[1] < 0xa0) || (lead == 0xed && text[1] > 0x9f) ||
      (lead == 0xf0 && text[1] < 0x90) || (lead == 0xf4 && text[1] > 0x8f))
    return 0;
  return size;
}

// A file's name as UTF-8, for reports: bytes that are none are question marks.
std::string NameOf(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (size_t at = 0; at < name.size();) {
    const size_t size =
        CharacterBytes(reinterpret_cast<const unsigned char*>(name.data()) + at, name.size() - at);
    if (size == 0) name[at] = '?';
    at += std::max<size_t>(size, 1);
  }
  return name;
}

std::string ReadBytes(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) throw Failure(path + ": is a folder, not a text file");
  errno = 0;
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (!file)
    throw Failure(path + ": cannot be read: " + (errno != 0 ? std::strerror(errno) : "out of memory"));
  std::string bytes(kMaxTextBytes, '\0');
  const int got = gzread(file.get(), bytes.data(), static_cast<unsigned>(bytes.size()));
  int error = Z_OK;
  const char* text = gzerror(file.get(), &error);
  // A gzip'd file that ends early gives what it has, and this error.
  if (got < 0 || error == Z_BUF_ERROR) {
    throw Failure(path +
                  ": cannot be read: " + (error == Z_ERRNO ? std::strerror(errno) : std::string(text)));
  }
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

// What the model puts before a text, for example its token for a beginning; not what it puts after one.
std::vector<int32_t> Beginning(const engine::Engine& engine) {
  std::vector<int32_t> head = Take(engine.Tokenize("", true, false), "tokens of a beginning");
  const engine::Geometry& geometry = engine.geometry();
  if (!head.empty() && head.back() == geometry.eos && geometry.eos != geometry.bos) head.pop_back();
  return head;
}

}  // namespace

std::string ReadText(const std::string& path) {
  std::string text = ReadBytes(path);
  if (text.find_first_not_of(" \t\r\n\f\v") == std::string::npos) throw Failure(path + ": has no text");
  if (const size_t nul = text.find('\0'); nul != std::string::npos)
    throw Failure(path + ": is binary, not text: byte " + std::to_string(nul) + " is 0");
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t at = 0; at < text.size();) {
    const size_t size = CharacterBytes(bytes + at, text.size() - at);
    if (size == 0 && text.size() == kMaxTextBytes && text.size() - at < 4) {
      text.resize(at);
      break;
    }
    if (size == 0) throw Failure(path + ": is not UTF-8 text at byte " + std::to_string(at));
    at += size;
  }
  return text;
}

std::vector<TextDocument> ReadDocuments(const engine::Engine& engine, std::span<const std::string> paths,
                                        const DocumentCut& cut) {
  const std::vector<int32_t> head = Beginning(engine);
  const size_t room = static_cast<size_t>(cut.max_tokens) - head.size();
  const size_t least = static_cast<size_t>(cut.min_tokens) - head.size();
  std::vector<TextDocument> documents;
  for (const std::string& path : paths) {
    const std::vector<int32_t> tokens = Take(engine.Tokenize(ReadText(path), false, false), path.c_str());
    if (tokens.size() < least) {
      throw Failure(path + ": is too short: it has " + std::to_string(tokens.size() + head.size()) +
                    " tokens, and a document needs " + std::to_string(cut.min_tokens));
    }
    std::span<const int32_t> left = tokens;
    for (int32_t i = 0; i < cut.per_file && left.size() >= std::max<size_t>(least, 1); ++i) {
      const std::span<const int32_t> own = left.first(std::min(room, left.size()));
      left = left.subspan(own.size());
      TextDocument document;
      document.index = i;
      document.name = NameOf(path);
      if (i > 0) document.name += "#" + std::to_string(i + 1);
      document.tokens = head;
      document.tokens.insert(document.tokens.end(), own.begin(), own.end());
      documents.push_back(std::move(document));
    }
  }
  return documents;
}

std::vector<std::string> CollectedTexts(const std::string& folder) {
  std::vector<std::string> files = FilesIn(folder);
  if (files.empty())
    throw Failure("no documents: " + folder + " is empty; run ./bootstrap deps, or name text files");
  return files;
}

void KeepFirst(int32_t count, std::vector<std::string>* files) {
  if (count == 0) return;
  if (static_cast<size_t>(count) > files->size()) {
    throw Failure("--documents is " + std::to_string(count) + ", there are " + std::to_string(files->size()) +
                  " documents");
  }
  files->resize(static_cast<size_t>(count));
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    if (entry.is_regular_file(code)) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace kvt::cli
