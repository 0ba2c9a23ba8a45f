#include "kvartet/pull.h"

#include <poll.h>

#include "kvartet/worker.h"

namespace kvt::cli {

StreamPull::StreamPull(const Node& node, const Peer& peer, StreamName name, std::vector<Piece> pieces,
                       uint64_t raw_bytes, int64_t timeout_ms)
    : node_(node),
      name_(name),
      pieces_(std::move(pieces)),
      offsets_(pieces_.size()),
      lengths_(pieces_.size()) {
  // Whole frames are a little larger than raw rows: header, segment table, alignment.
  const size_t cap = raw_bytes + raw_bytes / 16 + pieces_.size() * (1 << 20);
  buffer_.reset(new uint8_t[cap]);
  Check(kvt_peer_submit_pull_stream(peer.get(), name_.key.data(), buffer_.get(), cap, offsets_.data(),
                                    lengths_.data(), pieces_.size(), timeout_ms, &operation_),
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

void WaitForPiece(const Node& node, const std::vector<StreamPull*>& pulls, StreamPull* pull, size_t i) {
  int32_t fd = -1;
  Check(kvt_node_event_fd(node.get(), &fd), "kvt_node_event_fd");
  while (!pull->HasPiece(i)) {
    if (pull->done()) {
      throw Failure(std::string("piece ") + std::to_string(i) +
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
             std::span<engine::KvBlob> blobs, engine::Session* session, kvt_codec_report_t* totals,
             const std::function<void()>& last_arrived) {
  const std::vector<Piece>& pieces = pull->pieces();
  std::vector<kvt_codec_report_t> reports(pieces.size());
  Worker helper;  // the last of the three: its tasks use the others
  for (size_t i = 0; i < pieces.size();) {
    const size_t end = EndOfPart(pieces, i);
    engine::KvBlob& blob = blobs[pieces[i].part];
    for (; i < end; ++i) {
      WaitForPiece(node, pulls, pull, i);
      if (i + 1 == pieces.size()) last_arrived();
      const auto decode = [&codec, pull, &blob, &reports, i] {
        DecodePiece(codec, pull->name(), pull->frame(i), pull->pieces()[i], blob, &reports[i]);
      };
      // Every other one, so that this thread has the last.
      if ((end - i) % 2 == 0) {
        helper.Run(decode);
      } else {
        decode();
      }
    }
    helper.Wait();
    Take(session->Commit(blob), "commit");
  }
  for (const kvt_codec_report_t& report : reports) {
    totals->checksums += report.checksums;
    totals->frame_bytes += report.frame_bytes;
    totals->decoded_bytes += report.decoded_bytes;
  }
}

}  // namespace kvt::cli
