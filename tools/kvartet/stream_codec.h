// How the demo cuts a prompt's KV into the parts of a stream, the same on both sides.
#ifndef KVARTET_TOOLS_KVARTET_STREAM_CODEC_H_
#define KVARTET_TOOLS_KVARTET_STREAM_CODEC_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "kvartet/library.h"
#include "kvartet/settings.h"

namespace kvt::cli {

inline constexpr int32_t kPrefillChunk = 512;

// Part i of a stream holds the tokens [begin, end) of prefill chunk i.
struct Part {
  int32_t begin = 0;
  int32_t end = 0;
};
std::vector<Part> Parts(int32_t prefix_tokens);

// What names a stream: its codec is part of it, so that a lossy and a full stream of one prompt differ.
struct StreamName {
  KeyBytes key;
  NamespaceDigest ns;
};
StreamName NameStream(const Model& model, std::span<const int32_t> prefix, const std::string& label);

// Encodes parts one after another into one buffer, whose memory is kept from part to part.
class PartEncoder {
 public:
  // The frame of one part; valid until the next call. Exempt tokens: the prompt's first `sinks` and last
  // `window`, for lossy streams.
  std::span<const uint8_t> Encode(const Codec& codec, const StreamName& name, const engine::KvBlob& blob,
                                  uint32_t exempt_first, uint32_t exempt_last, kvt_codec_report_t* report);

 private:
  std::unique_ptr<uint8_t[]> buffer_;
  size_t capacity_ = 0;
};

// Checks and decodes a part's frame into a blob of exactly its tokens.
void DecodePart(const Codec& codec, const StreamName& name, std::span<const uint8_t> frame,
                engine::KvBlob* blob, kvt_codec_report_t* report);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_STREAM_CODEC_H_
