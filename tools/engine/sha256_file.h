// The SHA-256 of a file. Threads: any. Blocks: reads the whole file.
#ifndef KVARTET_TOOLS_ENGINE_SHA256_FILE_H_
#define KVARTET_TOOLS_ENGINE_SHA256_FILE_H_

#include <array>
#include <cstdint>
#include <string>

#include "engine/result.h"

namespace kvt::engine {

Result<std::array<uint8_t, 32>> Sha256File(const std::string& path);

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_SHA256_FILE_H_
