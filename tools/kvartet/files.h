// Whole files in and out. All throw Failure with the path and the system's words.
#ifndef KVARTET_TOOLS_KVARTET_FILES_H_
#define KVARTET_TOOLS_KVARTET_FILES_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace kvt::cli {

using ByteSpan = std::span<const uint8_t>;

std::vector<uint8_t> ReadFile(const std::string& path);

// Writes the pieces one after another into a file beside `path`, then renames it: whoever reads `path` finds
// the old file or the new one, whole. Makes the folder when it is missing.
void WriteFile(const std::string& path, std::initializer_list<ByteSpan> pieces);
void WriteFile(const std::string& path, const std::string& text);

// Fails now if WriteFile would have no place to write later.
void CheckWritable(const std::string& path);

std::string Hex(ByteSpan bytes);
// Throws Failure when `text` is not the hexadecimal digits of `out`'s bytes.
void FromHex(const std::string& text, std::span<uint8_t> out);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_FILES_H_
