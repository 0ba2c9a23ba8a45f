// Pulls between two nodes of one process, over both transports.
#include <poll.h>
#include <stdlib.h>

#include <filesystem>

#include "unit/node/fixture.h"

namespace kvt_test {
namespace {

class PullTest : public testing::TestWithParam<bool> {
 protected:
  std::string Listen() { return GetParam() ? socket_.url() : "tcp://127.0.0.1:0"; }
  SocketPath socket_;
};
INSTANTIATE_TEST_SUITE_P(Transports, PullTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Unix" : "Tcp"; });

TEST_P(PullTest, BringsFramesByteForByte) {
  Side producer({.listen = Listen()}), consumer({});
  std::vector<std::vector<uint8_t>> frames;
  for (uint32_t i = 0; i < 5; ++i) {
    frames.push_back(MakeFrame(producer.model, MakeKey(i), 1 + i * 40, i));
    producer.Put(MakeKey(i), frames.back());
  }
  const kvt_peer_t peer = consumer.Connect(producer.url());
  Pull pull(5, frames.back().size());
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, 5)));
  KVT_ASSERT_OK(pull.Wait(consumer.node));
  uint64_t bytes = 0;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(pull.results[i], KVT_OK);
    EXPECT_EQ(pull.Frame(i), frames[i]);
    bytes += frames[i].size();
  }
  EXPECT_EQ(pull.completion.items_ok, 5u);
  EXPECT_EQ(pull.completion.items, 5u);
  EXPECT_EQ(pull.completion.bytes, bytes);
  EXPECT_EQ(pull.completion.kind, static_cast<uint32_t>(KVT_COMPLETION_DONE));
  EXPECT_EQ(consumer.Stats().frames_received, 5u);
  EXPECT_EQ(producer.Stats().frames_sent, 5u);
  EXPECT_GE(consumer.Stats().bytes_received, bytes);
  EXPECT_GE(consumer.Stats().checksums, 5u);
  EXPECT_EQ(consumer.Stats().corrupt, 0u);
}

TEST_P(PullTest, AMeterHasTheTimesOfItsRuntimesOperations) {
  Side producer({.listen = Listen()}), consumer({});
  producer.Put(MakeKey(0), MakeFrame(producer.model, MakeKey(0), 16, 0));
  const kvt_peer_t peer = consumer.Connect(producer.url());
  for (const uint32_t key : {0u, 0u, 9u}) {
    Pull pull(1, 64 << 10);
    KVT_ASSERT_OK(pull.Submit(peer, MakeKey(key)));
    EXPECT_EQ(pull.Wait(consumer.node), key == 0 ? KVT_OK : KVT_ERR_NOT_FOUND);
  }
  const auto text = [](const Side& side) {
    kvt_meter_t meter = 0;
    EXPECT_EQ(kvt_meter_create(side.runtime, &meter), KVT_OK) << LastError();
    std::string json(4096, '\0');
    size_t needed = 0;
    EXPECT_EQ(kvt_meter_json(meter, json.data(), json.size(), &needed), KVT_OK) << LastError();
    kvt_meter_destroy(meter);
    return json.substr(0, needed);
  };
  EXPECT_NE(text(consumer).find("\"pull\":{\"ended\":3,\"failed\":1,"), std::string::npos) << text(consumer);
  EXPECT_NE(text(consumer).find("\"put\":{\"ended\":0,\"failed\":0,"), std::string::npos) << text(consumer);
  EXPECT_NE(text(producer).find("\"put\":{\"ended\":1,\"failed\":0,"), std::string::npos) << text(producer);
}

TEST_P(PullTest, TakesAThousandBlocksInOneCall) {
  Side producer({.listen = Listen()}), consumer({});
  size_t slot = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    const auto frame = MakeFrame(producer.model, MakeKey(i), 1 + i % 7, i);
    slot = std::max(slot, frame.size());
    producer.Put(MakeKey(i), frame);
  }
  const kvt_peer_t peer = consumer.Connect(producer.url());
  Pull pull(1000, slot);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, 1000)));
  KVT_ASSERT_OK(pull.Wait(consumer.node));
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(pull.results[i], KVT_OK) << i;
    ASSERT_EQ(pull.Frame(i), producer.Get(MakeKey(i))) << i;
  }
}

TEST_P(PullTest, ReportsEachBlockOnItsOwn) {
  Side producer({.listen = Listen()}), consumer({});
  const auto small = MakeFrame(producer.model, MakeKey(0), 2, 0);
  const auto large = MakeFrame(producer.model, MakeKey(2), 64, 2);
  producer.Put(MakeKey(0), small);
  producer.Put(MakeKey(2), large);
  const kvt_peer_t peer = consumer.Connect(producer.url());
  Pull pull(3, small.size());
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, 3)));
  EXPECT_EQ(pull.Wait(consumer.node), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(pull.results[0], KVT_OK);
  EXPECT_EQ(pull.results[1], KVT_ERR_NOT_FOUND);
  EXPECT_EQ(pull.results[2], KVT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(pull.Frame(0), small);
  EXPECT_EQ(pull.lengths[1], 0u);
  EXPECT_EQ(pull.lengths[2], large.size());
  EXPECT_EQ(pull.completion.items_ok, 1u);
  EXPECT_EQ(pull.completion.status, KVT_ERR_NOT_FOUND);
}

TEST_P(PullTest, SeveralInFlightOnOneConnection) {
  Side producer({.listen = Listen()}), consumer({});
  for (uint32_t i = 0; i < 64; ++i) producer.Put(MakeKey(i), MakeFrame(producer.model, MakeKey(i), 33, i));
  const kvt_peer_t peer = consumer.Connect(producer.url());
  std::vector<Pull> pulls(16, Pull(4, 256 << 10));
  for (uint32_t i = 0; i < pulls.size(); ++i) KVT_ASSERT_OK(pulls[i].Submit(peer, MakeKeys(i * 4, 4)));
  for (uint32_t i = 0; i < pulls.size(); ++i) {
    KVT_ASSERT_OK(pulls[i].Wait(consumer.node));
    for (uint32_t j = 0; j < 4; ++j) EXPECT_EQ(pulls[i].Frame(j), producer.Get(MakeKey(i * 4 + j)));
  }
}

TEST_P(PullTest, CompletionsAreAnnouncedAndPolled) {
  Side producer({.listen = Listen()}), consumer({});
  producer.Put(MakeKey(1), MakeFrame(producer.model, MakeKey(1), 4, 1));
  const kvt_peer_t peer = consumer.Connect(producer.url());
  int32_t fd = -1;
  KVT_ASSERT_OK(kvt_node_event_fd(consumer.node, &fd));
  Pull pull(1, 64 << 10);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKey(1)));
  pollfd waiting = {fd, POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, kLong), 1);
  kvt_completion_t completions[4];
  size_t count = 0;
  KVT_ASSERT_OK(kvt_node_poll(consumer.node, completions, 4, &count));
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(completions[0].operation, pull.operation);
  EXPECT_EQ(completions[0].status, KVT_OK);
  EXPECT_EQ(kvt_node_wait(consumer.node, pull.operation, 0, nullptr), KVT_ERR_NOT_FOUND);
}

TEST_P(PullTest, OfADiskCache) {
  char directory[] = "/tmp/kvt-net-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  {
    Side producer({.listen = Listen(), .cache = std::string("file:") + directory}), consumer({});
    for (uint32_t i = 0; i < 100; ++i) producer.Put(MakeKey(i), MakeFrame(producer.model, MakeKey(i), 9, i));
    const kvt_peer_t peer = consumer.Connect(producer.url());
    Pull pull(101, 64 << 10);
    KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, 101)));
    EXPECT_EQ(pull.Wait(consumer.node), KVT_ERR_NOT_FOUND);
    EXPECT_EQ(pull.completion.items_ok, 100u);
    for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(pull.Frame(i), producer.Get(MakeKey(i)));
  }
  std::filesystem::remove_all(directory);
}

TEST_P(PullTest, NothingIsServedWithoutACache) {
  Side producer({.listen = Listen(), .serve = false}), consumer({});
  const kvt_peer_t peer = consumer.Connect(producer.url());
  Pull pull(2, 4096);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, 2)));
  EXPECT_EQ(pull.Wait(consumer.node), KVT_ERR_UNAVAILABLE);
  Pull none(0, 4096);
  KVT_ASSERT_OK(none.Submit(peer, {}));
  KVT_EXPECT_OK(none.Wait(consumer.node));
}

TEST_P(PullTest, FramesOfAnotherModelOrNamespaceAreNotReported) {
  Side producer({.listen = Listen()}), consumer({});
  const kvt_model_t other = MakeModel("model-b");
  producer.Put(MakeKey(0), MakeFrame(other, MakeKey(0), 4, 0));
  producer.Put(MakeKey(1), MakeFrame(producer.model, MakeKey(1), 4, 1, 0, 0x55));
  producer.Put(MakeKey(2), MakeFrame(producer.model, MakeKey(2), 4, 2));
  kvt_model_destroy(other);
  Pull pull(3, 64 << 10);
  KVT_ASSERT_OK(pull.Submit(consumer.Connect(producer.url()), MakeKeys(0, 3)));
  EXPECT_EQ(pull.Wait(consumer.node), KVT_ERR_MISMATCH);
  EXPECT_EQ(pull.results, (std::vector<kvt_status_t>{KVT_ERR_MISMATCH, KVT_ERR_MISMATCH, KVT_OK}));
  EXPECT_EQ(pull.completion.items_ok, 1u);
}

TEST_P(PullTest, FramesBeyondTheLimitDoNotTravel) {
  Side producer({.listen = Listen()}), consumer({.max_frame_bytes = 64 << 10});
  const auto frame = MakeFrame(producer.model, MakeKey(0), 64, 0);
  producer.Put(MakeKey(0), frame);
  const kvt_peer_t peer = consumer.Connect(producer.url());
  Pull pull(1, 1 << 20);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKey(0)));
  EXPECT_EQ(pull.Wait(consumer.node), KVT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(pull.lengths[0], frame.size());
  EXPECT_LT(consumer.Stats().bytes_received, 4096u);
  // A stream that carries it ends with LIMIT.
  kvt_stream_t stream = 0;
  KVT_ASSERT_OK(kvt_stream_open(producer.node, MakeKey(0).data(), &stream));
  KVT_ASSERT_OK(kvt_stream_append(stream, frame.data(), frame.size()));
  uint64_t offset = 0, length = 0, operation = 0;
  KVT_ASSERT_OK(kvt_peer_submit_pull_stream(peer, MakeKey(0).data(), pull.memory.data(), pull.memory.size(),
                                            &offset, &length, 1, kLong, &operation));
  EXPECT_EQ(kvt_node_wait(consumer.node, operation, kLong, nullptr), KVT_ERR_LIMIT);
}

TEST_P(PullTest, RefusesArgumentsThatAreNeverRight) {
  Side producer({.listen = Listen()}), consumer({});
  const kvt_peer_t peer = consumer.Connect(producer.url());
  Pull pull(1, 4096);
  EXPECT_EQ(pull.Submit(peer, MakeKey(0), -1), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(LastError().find("timeout_ms"), std::string::npos);
  pull.stride = SIZE_MAX;
  EXPECT_EQ(pull.Submit(peer, MakeKey(0)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(LastError().find("stride"), std::string::npos);
  EXPECT_EQ(kvt_peer_submit_pull(peer, nullptr, 1, pull.memory.data(), 4096, pull.lengths.data(),
                                 pull.results.data(), 0, &pull.operation),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_peer_submit_pull(consumer.node, MakeKey(0).data(), 1, pull.memory.data(), 4096,
                                 pull.lengths.data(), pull.results.data(), 0, &pull.operation),
            KVT_ERR_WRONG_HANDLE);
  kvt_peer_destroy(peer);
  kvt_peer_destroy(peer);
  pull.stride = 4096;
  EXPECT_EQ(pull.Submit(peer, MakeKey(0)), KVT_ERR_STALE_HANDLE);
}

}  // namespace
}  // namespace kvt_test
