// The frames of the demo's streams: what names them, and how they are encoded and decoded.
#ifndef KVARTET_TOOLS_KVARTET_STREAM_CODEC_H_
#define KVARTET_TOOLS_KVARTET_STREAM_CODEC_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "kvartet/library.h"
#include "kvartet/settings.h"
#include "kvartet/stream_cut.h"

namespace kvt::cli {

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
  // The frame of one piece of the part in `blob`.
  std::span<const uint8_t> Encode(const Codec& codec, const StreamName& name, const engine::KvBlob& blob,
                                  const Piece& piece, kvt_codec_report_t* report);

 private:
  std::span<const uint8_t> Encode(const Codec& codec, const kvt_frame_spec_t& spec,
                                  const engine::KvBlob& blob, kvt_codec_report_t* report);

  std::unique_ptr<uint8_t[]> buffer_;
  size_t capacity_ = 0;
};

// Checks and decodes a part's frame into a blob of exactly its tokens.
void DecodePart(const Codec& codec, const StreamName& name, std::span<const uint8_t> frame,
                engine::KvBlob* blob, kvt_codec_report_t* report);
// The same for one piece of the part in `blob`. Several threads may decode different pieces of it.
void DecodePiece(const Codec& codec, const StreamName& name, std::span<const uint8_t> frame,
                 const Piece& piece, const engine::KvBlob& blob, kvt_codec_report_t* report);

// A blob for each part, whose memory has been touched: what is on the way to the first token does not pay for
// that.
std::vector<engine::KvBlob> ReserveParts(const engine::Session& session, std::span<const Part> parts);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_STREAM_CODEC_H_
