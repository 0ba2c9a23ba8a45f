// Encodes and decodes whole contexts as `kvartet quality` measures them. Threads: one at a time.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_CODER_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_CODER_H_

#include <cstdint>
#include <memory>
#include <span>

#include "engine/engine.h"
#include "kvartet/library.h"

namespace kvt::cli {

class ContextCoder {
 public:
  // So many first and last tokens are exempt.
  ContextCoder(uint32_t sinks, uint32_t window) : sinks_(sinks), window_(window) {}

  // The frame of a context; valid until the next call, whose memory is the same. `importance` has a value for
  // each token, or is empty.
  std::span<const uint8_t> Encode(const Codec& codec, const engine::KvBlob& blob,
                                  std::span<const int8_t> importance);

 private:
  const uint32_t sinks_, window_;
  std::unique_ptr<uint8_t[]> buffer_;
  size_t capacity_ = 0;
};

// Into a blob of exactly the frame's tokens.
void DecodeContext(const Codec& codec, std::span<const uint8_t> frame, const engine::KvBlob& blob);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_CODER_H_
