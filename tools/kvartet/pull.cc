#include "kvartet/pull.h"

#include <poll.h>

namespace kvt::cli {

StreamPull::StreamPull(const Node& node, const Peer& peer, StreamName name, std::vector<Part> parts,
                       uint64_t raw_bytes, int64_t timeout_ms)
    : node_(node), name_(name), parts_(std::move(parts)), offsets_(parts_.size()), lengths_(parts_.size()) {
  // Whole frames are a little larger than raw rows: header, segment table, alignment.
  const size_t cap = raw_bytes + raw_bytes / 16 + parts_.size() * (1 << 20);
  buffer_.reset(new uint8_t[cap]);
  Check(kvt_peer_submit_pull_stream(peer.get(), name_.key.data(), buffer_.get(), cap, offsets_.data(),
                                    lengths_.data(), parts_.size(), timeout_ms, &operation_),
        "kvt_peer_submit_pull_stream");
}

StreamPull::~StreamPull() {
  // After the cancel the library no longer writes into the buffer; an operation that has ended is not found,
  // which is as good.
  if (!done_) kvt_node_cancel(node_.get(), operation_);
}

void StreamPull::Note(const kvt_completion_t& completion) {
  arrived_ = completion.items_ok;
  bytes_ = completion.bytes;
  if (completion.kind != KVT_COMPLETION_DONE) return;
  done_ = true;
  status_ = completion.status;
}

void WaitForPart(const Node& node, const std::vector<StreamPull*>& pulls, StreamPull* pull, size_t i) {
  int32_t fd = -1;
  Check(kvt_node_event_fd(node.get(), &fd), "kvt_node_event_fd");
  while (!pull->HasPart(i)) {
    if (pull->done()) {
      throw Failure(std::string("part ") + std::to_string(i) +
                        " of the stream did not come: " + kvt_status_name(pull->status()),
                    pull->status());
    }
    // Every operation has its own deadline and ends with a completion, so this wait is bounded by it.
    pollfd poll_fd = {fd, POLLIN, 0};
    poll(&poll_fd, 1, 1000);
    kvt_completion_t completions[16];
    size_t count = 0;
    Check(kvt_node_poll(node.get(), completions, 16, &count), "kvt_node_poll");
    for (size_t c = 0; c < count; ++c) {
      for (StreamPull* other : pulls) {
        if (other->operation() == completions[c].operation) other->Note(completions[c]);
      }
    }
  }
}

void Receive(const Node& node, const std::vector<StreamPull*>& pulls, StreamPull* pull, const Codec& codec,
             engine::Session* session, kvt_codec_report_t* totals,
             const std::function<void()>& last_arrived) {
  const std::vector<Part>& parts = pull->parts();
  for (size_t i = 0; i < parts.size(); ++i) {
    WaitForPart(node, pulls, pull, i);
    if (i + 1 == parts.size()) last_arrived();
    engine::KvBlob blob = Take(session->Reserve(parts[i].begin, parts[i].end - parts[i].begin), "reserve");
    kvt_codec_report_t report;
    DecodePart(codec, pull->name(), pull->frame(i), &blob, &report);
    totals->checksums += report.checksums;
    totals->frame_bytes += report.frame_bytes;
    totals->decoded_bytes += report.decoded_bytes;
    Take(session->Commit(blob), "commit");
  }
}

}  // namespace kvt::cli
