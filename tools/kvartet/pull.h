// D's end of the demo's streams: pieces are decoded as they arrive, whole parts handed to the engine.
#ifndef KVARTET_TOOLS_KVARTET_PULL_H_
#define KVARTET_TOOLS_KVARTET_PULL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kvartet/library.h"
#include "kvartet/stream_codec.h"

namespace kvt::cli {

// One stream being pulled. Create all that a request needs before waiting on any.
class StreamPull {
 public:
  StreamPull(const Node& node, const Peer& peer, StreamName name, std::vector<Piece> pieces,
             uint64_t raw_bytes, int64_t timeout_ms);
  ~StreamPull();
  StreamPull(const StreamPull&) = delete;
  StreamPull& operator=(const StreamPull&) = delete;

  uint64_t operation() const { return operation_; }
  // Takes a completion of this operation.
  void Note(const kvt_completion_t& completion);
  bool HasPiece(size_t i) const { return i < arrived_; }
  bool done() const { return done_; }
  // The status of the whole once done.
  kvt_status_t status() const { return status_; }

  const std::vector<Piece>& pieces() const { return pieces_; }
  std::span<const uint8_t> frame(size_t i) const { return {buffer_.get() + offsets_[i], lengths_[i]}; }
  const StreamName& name() const { return name_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const Node& node_;
  const StreamName name_;
  const std::vector<Piece> pieces_;
  std::unique_ptr<uint8_t[]> buffer_;
  std::vector<uint64_t> offsets_, lengths_;
  uint64_t operation_ = 0, bytes_ = 0;
  size_t arrived_ = 0;
  bool done_ = false;
  kvt_status_t status_ = KVT_OK;
};

// Waits until `pull` has piece i or has ended, noting the completions of all `pulls`. Throws Failure with the
// stream's status when it ended without the piece.
void WaitForPiece(const Node& node, const std::vector<StreamPull*>& pulls, StreamPull* pull, size_t i);

// Waits for every piece in order and decodes it into the blob of its part, two at a time; commits each part
// to the session. `last_arrived` is called when the last piece is here, before it is decoded.
void Receive(const Node& node, const std::vector<StreamPull*>& pulls, StreamPull* pull, const Codec& codec,
             std::span<engine::KvBlob> blobs, engine::Session* session, kvt_codec_report_t* totals,
             const std::function<void()>& last_arrived);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_PULL_H_
