// D's end of the demo's streams: parts are decoded and handed to the engine as they arrive.
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
  StreamPull(const Node& node, const Peer& peer, StreamName name, std::vector<Part> parts, uint64_t raw_bytes,
             int64_t timeout_ms);
  ~StreamPull();
  StreamPull(const StreamPull&) = delete;
  StreamPull& operator=(const StreamPull&) = delete;

  uint64_t operation() const { return operation_; }
  // Takes a completion of this operation.
  void Note(const kvt_completion_t& completion);
  bool HasPart(size_t i) const { return i < arrived_; }
  bool done() const { return done_; }
  // The status of the whole once done.
  kvt_status_t status() const { return status_; }

  const std::vector<Part>& parts() const { return parts_; }
  std::span<const uint8_t> frame(size_t i) const { return {buffer_.get() + offsets_[i], lengths_[i]}; }
  const StreamName& name() const { return name_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const Node& node_;
  const StreamName name_;
  const std::vector<Part> parts_;
  std::unique_ptr<uint8_t[]> buffer_;
  std::vector<uint64_t> offsets_, lengths_;
  uint64_t operation_ = 0, bytes_ = 0;
  size_t arrived_ = 0;
  bool done_ = false;
  kvt_status_t status_ = KVT_OK;
};

// Waits until `pull` has part i or has ended, noting the completions of all `pulls`. Throws Failure with the
// stream's status when it ended without the part.
void WaitForPart(const Node& node, const std::vector<StreamPull*>& pulls, StreamPull* pull, size_t i);

// Waits for every part in order, decodes it and commits it to the session. `last_arrived` is called when the
// last part is here, before it is decoded.
void Receive(const Node& node, const std::vector<StreamPull*>& pulls, StreamPull* pull, const Codec& codec,
             engine::Session* session, kvt_codec_report_t* totals, const std::function<void()>& last_arrived);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_PULL_H_
