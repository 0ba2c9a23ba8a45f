// Pushes into a peer's cache, and streams that are pulled while they are written.
#include <poll.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "unit/node/fixture.h"

namespace kvt_test {
namespace {

struct Push {
  void Add(uint32_t number, const std::vector<uint8_t>& frame) {
    const auto key = MakeKey(number);
    keys.insert(keys.end(), key.begin(), key.end());
    bytes.insert(bytes.end(), frame.begin(), frame.end());
    lengths.push_back(frame.size());
    results.push_back(1);
  }
  kvt_status_t Submit(kvt_peer_t peer) {
    return kvt_peer_submit_push(peer, keys.data(), lengths.size(), bytes.data(), lengths.data(),
                                results.data(), kLong, &operation);
  }
  kvt_status_t Wait(kvt_node_t node) { return kvt_node_wait(node, operation, kLong, &completion); }
  std::vector<uint8_t> keys, bytes;
  std::vector<uint64_t> lengths;
  std::vector<kvt_status_t> results;
  uint64_t operation = 0;
  kvt_completion_t completion = {};
};

TEST(Push, LandsInThePeersCache) {
  for (const std::string& cache : {std::string("mem:"), std::string("file:")}) {
    char directory[] = "/tmp/kvt-net-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    {
      Side receiver({.listen = "tcp://127.0.0.1:0", .cache = cache == "mem:" ? cache : cache + directory});
      Side sender({});
      const kvt_peer_t peer = sender.Connect(receiver.url());
      Push push;
      std::vector<std::vector<uint8_t>> frames;
      for (uint32_t i = 0; i < 200; ++i) {
        frames.push_back(MakeFrame(sender.model, MakeKey(i), 1 + i % 50, i));
        push.Add(i, frames.back());
      }
      KVT_ASSERT_OK(push.Submit(peer));
      KVT_ASSERT_OK(push.Wait(sender.node));
      EXPECT_EQ(push.completion.items_ok, 200u);
      EXPECT_EQ(push.completion.bytes, push.bytes.size());
      for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(receiver.Get(MakeKey(i)), frames[i]) << i;
      EXPECT_EQ(receiver.Stats().frames_received, 200u);
    }
    std::filesystem::remove_all(directory);
  }
}

TEST(Push, RefusesEachBadFrameOnItsOwn) {
  Side receiver({.listen = "tcp://127.0.0.1:0", .max_frame_bytes = 256 << 10}), sender({});
  const kvt_model_t other_model = MakeModel("model-b");
  const kvt_peer_t peer = sender.Connect(receiver.url());
  Push push;
  push.Add(0, MakeFrame(sender.model, MakeKey(0), 8, 0));
  auto flipped = MakeFrame(sender.model, MakeKey(1), 8, 1);
  flipped[flipped.size() - 100] ^= 4;
  push.Add(1, flipped);
  push.Add(2, MakeFrame(sender.model, MakeKey(77), 8, 2));       // another key
  push.Add(3, MakeFrame(other_model, MakeKey(3), 8, 3));         // another model
  push.Add(4, MakeFrame(sender.model, MakeKey(4), 8, 4, 0, 9));  // another namespace
  push.Add(5, MakeFrame(sender.model, MakeKey(5), 256, 5));      // too long for the peer
  push.Add(6, std::vector<uint8_t>(100, 0));                     // no frame at all
  push.Add(7, MakeFrame(sender.model, MakeKey(7), 8, 7));
  KVT_ASSERT_OK(push.Submit(peer));
  EXPECT_EQ(push.Wait(sender.node), KVT_ERR_CORRUPT);
  EXPECT_EQ(push.results,
            (std::vector<kvt_status_t>{KVT_OK, KVT_ERR_CORRUPT, KVT_ERR_MISMATCH, KVT_ERR_MISMATCH,
                                       KVT_ERR_MISMATCH, KVT_ERR_LIMIT, KVT_ERR_CORRUPT, KVT_OK}));
  for (uint32_t i = 1; i < 7; ++i) EXPECT_TRUE(receiver.Get(MakeKey(i)).empty()) << i;
  EXPECT_FALSE(receiver.Get(MakeKey(7)).empty());
  EXPECT_EQ(receiver.Stats().corrupt, 2u);
  kvt_model_destroy(other_model);
}

TEST(Push, NeedsACacheAndMemoryAtThePeer) {
  Side bare({.listen = "tcp://127.0.0.1:0", .serve = false}), sender({});
  Push push;
  push.Add(0, MakeFrame(sender.model, MakeKey(0), 64, 0));
  KVT_ASSERT_OK(push.Submit(sender.Connect(bare.url())));
  EXPECT_EQ(push.Wait(sender.node), KVT_ERR_UNAVAILABLE);

  Side small({.listen = "tcp://127.0.0.1:0", .memory_limit = 100'000});
  KVT_ASSERT_OK(push.Submit(sender.Connect(small.url())));
  EXPECT_EQ(push.Wait(sender.node), KVT_ERR_LIMIT);
}

// A pull of a stream and its memory.
struct StreamPull {
  explicit StreamPull(size_t cap, size_t parts) : memory(cap), offsets(parts), lengths(parts) {}
  kvt_status_t Submit(kvt_peer_t peer, const std::vector<uint8_t>& key, int64_t timeout_ms = kLong) {
    return kvt_peer_submit_pull_stream(peer, key.data(), memory.data(), memory.size(), offsets.data(),
                                       lengths.data(), offsets.size(), timeout_ms, &operation);
  }
  std::vector<uint8_t> Part(size_t i) const {
    const auto begin = memory.begin() + static_cast<ptrdiff_t>(offsets[i]);
    return std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(lengths[i]));
  }
  std::vector<uint8_t> memory;
  std::vector<uint64_t> offsets, lengths;
  uint64_t operation = 0;
};

kvt_completion_t Next(kvt_node_t node) {
  int32_t fd = -1;
  EXPECT_EQ(kvt_node_event_fd(node, &fd), KVT_OK);
  pollfd waiting = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, kLong), 1);
  kvt_completion_t completion = {};
  size_t count = 0;
  EXPECT_EQ(kvt_node_poll(node, &completion, 1, &count), KVT_OK);
  EXPECT_EQ(count, 1u);
  return completion;
}

TEST(Stream, PartsComeInOrderWhileTheProducerWrites) {
  Side producer({.listen = "tcp://127.0.0.1:0"}), consumer({});
  const kvt_peer_t peer = consumer.Connect(producer.url());
  StreamPull pull(1 << 20, 8);
  // Asked for before it is opened.
  KVT_ASSERT_OK(pull.Submit(peer, MakeKey(5)));
  kvt_stream_t stream = 0;
  KVT_ASSERT_OK(kvt_stream_open(producer.node, MakeKey(5).data(), &stream));
  for (uint32_t layer = 0; layer < 4; ++layer) {
    const auto frame = MakeFrame(producer.model, MakeKey(5), 3 + layer * 5, layer, layer);
    KVT_ASSERT_OK(kvt_stream_append(stream, frame.data(), frame.size()));
    const kvt_completion_t part = Next(consumer.node);
    EXPECT_EQ(part.operation, pull.operation);
    EXPECT_EQ(part.kind, static_cast<uint32_t>(KVT_COMPLETION_PART));
    EXPECT_EQ(part.items_ok, layer + 1);
    EXPECT_EQ(pull.offsets[layer] % 64, 0u);
    EXPECT_EQ(pull.Part(layer), frame);
  }
  KVT_ASSERT_OK(kvt_stream_finish(stream, 1));
  EXPECT_EQ(kvt_stream_finish(stream, 1), KVT_ERR_CLOSED);
  const kvt_completion_t done = Next(consumer.node);
  EXPECT_EQ(done.kind, static_cast<uint32_t>(KVT_COMPLETION_DONE));
  EXPECT_EQ(done.status, KVT_OK);
  EXPECT_EQ(done.items, 4u);
  EXPECT_EQ(done.items_ok, 4u);

  // A second reader gets it all; a stream that was destroyed is not found any more.
  StreamPull again(1 << 20, 8);
  KVT_ASSERT_OK(again.Submit(peer, MakeKey(5)));
  kvt_completion_t completion;
  KVT_ASSERT_OK(kvt_node_wait(consumer.node, again.operation, kLong, &completion));
  EXPECT_EQ(completion.items_ok, 4u);
  EXPECT_EQ(again.Part(3), pull.Part(3));
  kvt_stream_destroy(stream);
  KVT_ASSERT_OK(again.Submit(peer, MakeKey(5), 20));
  EXPECT_EQ(kvt_node_wait(consumer.node, again.operation, kLong, nullptr), KVT_ERR_TIMEOUT);
}

TEST(Stream, ManyPartsOverASlowLinkAndThreads) {
  SocketPath socket;
  Side producer({.listen = socket.url() + "?bandwidth=100MB"}), consumer({});
  const kvt_peer_t peer = consumer.Connect(producer.url());
  StreamPull pull(16 << 20, 100);
  kvt_stream_t stream = 0;
  KVT_ASSERT_OK(kvt_stream_open(producer.node, MakeKey(1).data(), &stream));
  std::vector<std::vector<uint8_t>> frames;
  for (uint32_t i = 0; i < 100; ++i) frames.push_back(MakeFrame(producer.model, MakeKey(i), 1 + i % 60, i));
  std::thread writer([&] {
    for (const auto& frame : frames) ASSERT_EQ(kvt_stream_append(stream, frame.data(), frame.size()), KVT_OK);
    ASSERT_EQ(kvt_stream_finish(stream, 1), KVT_OK);
  });
  KVT_ASSERT_OK(pull.Submit(peer, MakeKey(1)));
  kvt_completion_t completion;
  KVT_EXPECT_OK(kvt_node_wait(consumer.node, pull.operation, kLong, &completion));
  writer.join();
  EXPECT_EQ(completion.items_ok, 100u);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(pull.Part(i), frames[i]);
}

TEST(Stream, AnAbortReachesTheReader) {
  for (const bool destroy : {false, true}) {
    Side producer({.listen = "tcp://127.0.0.1:0"}), consumer({});
    const kvt_peer_t peer = consumer.Connect(producer.url());
    StreamPull pull(1 << 20, 8);
    kvt_stream_t stream = 0;
    KVT_ASSERT_OK(kvt_stream_open(producer.node, MakeKey(1).data(), &stream));
    const auto frame = MakeFrame(producer.model, MakeKey(1), 4, 1);
    KVT_ASSERT_OK(kvt_stream_append(stream, frame.data(), frame.size()));
    KVT_ASSERT_OK(pull.Submit(peer, MakeKey(1)));
    EXPECT_EQ(Next(consumer.node).kind, static_cast<uint32_t>(KVT_COMPLETION_PART));
    if (destroy) {
      kvt_stream_destroy(stream);
    } else {
      KVT_ASSERT_OK(kvt_stream_finish(stream, 0));
      EXPECT_EQ(kvt_stream_append(stream, frame.data(), frame.size()), KVT_ERR_CLOSED);
    }
    const kvt_completion_t done = Next(consumer.node);
    EXPECT_EQ(done.kind, static_cast<uint32_t>(KVT_COMPLETION_DONE));
    EXPECT_EQ(done.status, KVT_ERR_CANCELLED);
    EXPECT_EQ(done.items_ok, 1u);
  }
}

TEST(Stream, RefusesWhatItCannotHold) {
  Side producer({.listen = "tcp://127.0.0.1:0", .memory_limit = 100'000}), consumer({});
  kvt_stream_t stream = 0, second = 0;
  KVT_ASSERT_OK(kvt_stream_open(producer.node, MakeKey(1).data(), &stream));
  EXPECT_EQ(kvt_stream_open(producer.node, MakeKey(1).data(), &second), KVT_ERR_ALREADY_EXISTS);
  const auto frame = MakeFrame(producer.model, MakeKey(1), 20, 1);
  EXPECT_EQ(kvt_stream_append(stream, frame.data(), frame.size() - 1), KVT_ERR_CORRUPT);
  EXPECT_EQ(kvt_stream_append(stream, frame.data(), 10), KVT_ERR_CORRUPT);
  const auto foreign = MakeFrame(producer.model, MakeKey(1), 2, 1, 0, 7);
  EXPECT_EQ(kvt_stream_append(stream, foreign.data(), foreign.size()), KVT_ERR_MISMATCH);
  KVT_ASSERT_OK(kvt_stream_append(stream, frame.data(), frame.size()));
  KVT_ASSERT_OK(kvt_stream_append(stream, frame.data(), frame.size()));
  EXPECT_EQ(kvt_stream_append(stream, frame.data(), frame.size()), KVT_ERR_LIMIT);

  // Too little room for bytes, or for parts, at the reader.
  const kvt_peer_t peer = consumer.Connect(producer.url());
  StreamPull narrow(frame.size() + 100, 8), few(1 << 20, 1);
  for (StreamPull* pull : {&narrow, &few}) {
    KVT_ASSERT_OK(pull->Submit(peer, MakeKey(1)));
    kvt_completion_t completion;
    EXPECT_EQ(kvt_node_wait(consumer.node, pull->operation, kLong, &completion), KVT_ERR_BUFFER_TOO_SMALL);
    EXPECT_EQ(completion.items_ok, 1u);
    EXPECT_EQ(pull->Part(0), frame);
  }
  // The connection goes on.
  StreamPull enough(1 << 20, 8);
  KVT_ASSERT_OK(kvt_stream_finish(stream, 1));
  KVT_ASSERT_OK(enough.Submit(peer, MakeKey(1)));
  KVT_EXPECT_OK(kvt_node_wait(consumer.node, enough.operation, kLong, nullptr));
  kvt_stream_destroy(stream);
  kvt_stream_destroy(stream);
  EXPECT_EQ(kvt_stream_append(stream, frame.data(), frame.size()), KVT_ERR_STALE_HANDLE);
  uint64_t used = 1;
  KVT_ASSERT_OK(kvt_runtime_memory_used(producer.runtime, &used));
}

}  // namespace
}  // namespace kvt_test
