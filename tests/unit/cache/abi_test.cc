// The C functions of kvartet/cache.h over the shared library, with public headers only.
#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <vector>

#include "kvartet/kvartet.h"

namespace {

constexpr uint32_t kTokens = 64, kBlock = 16, kCount = kTokens / kBlock;

std::string LastError() {
  char text[KVT_ERROR_TEXT_MAX];
  size_t size = 0;
  return kvt_last_error(text, sizeof text, &size) == KVT_OK ? std::string(text, size) : "";
}

class CacheAbi : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kvt_runtime_create(nullptr, &runtime_), KVT_OK);
    kvt_model_options_t options;
    kvt_model_options_init(&options, sizeof options);
    options.model_id = reinterpret_cast<const uint8_t*>("m");
    options.model_id_len = 1;
    options.layers = 2;
    options.kv_heads = 1;
    options.k_dim = options.v_dim = 16;
    ASSERT_EQ(kvt_model_create(&options, &model_), KVT_OK) << LastError();
    ASSERT_EQ(kvt_codec_create(model_, nullptr, &codec_), KVT_OK) << LastError();
    ASSERT_EQ(kvt_cache_open(runtime_, "mem:", 4, &cache_), KVT_OK) << LastError();
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = static_cast<uint16_t>(i);
    for (int part = 0; part < 4; ++part) bases_.push_back(&rows_[static_cast<size_t>(part) * kTokens * 16]);
    kvt_view_init(&view_, sizeof view_);
    view_.element = KVT_ELEMENT_F16;
    view_.layer_end = 2;
    view_.head_end = 1;
    view_.bases = bases_.data();
    view_.base_count = bases_.size();
    for (int stream = 0; stream < 2; ++stream) {
      view_.token_stride[stream] = view_.head_stride[stream] = 32;
      view_.element_stride[stream] = 2;
    }
    view_.tokens = kTokens;
    kvt_frame_spec_init(&spec_, sizeof spec_);
    std::vector<int32_t> tokens(kTokens, 5);
    keys_.resize(kCount * KVT_KEY_BYTES);
    ASSERT_EQ(
        kvt_keys_compute(model_, nullptr, tokens.data(), tokens.size(), keys_.data(), keys_.size(), nullptr),
        KVT_OK)
        << LastError();
  }
  void TearDown() override {
    kvt_cache_destroy(cache_);
    kvt_codec_destroy(codec_);
    kvt_model_destroy(model_);
    EXPECT_EQ(kvt_runtime_close(runtime_, 10000), KVT_OK);
    kvt_runtime_destroy(runtime_);
  }
  kvt_status_t Store(uint64_t* operation, uint32_t block = kBlock, size_t count = kCount) {
    return kvt_cache_submit_store(cache_, codec_, &view_, &spec_, block, keys_.data(), count, results_.data(),
                                  60000, operation);
  }
  // Many at once, with results of its own for each.
  void StoreMany(std::vector<std::vector<kvt_status_t>>* results, uint64_t* operation) {
    for (std::vector<kvt_status_t>& own : *results) {
      own.resize(kCount);
      ASSERT_EQ(kvt_cache_submit_store(cache_, codec_, &view_, &spec_, kBlock, keys_.data(), kCount,
                                       own.data(), 60000, operation),
                KVT_OK)
          << LastError();
    }
  }
  void StoreAll() {
    uint64_t operation = 0;
    ASSERT_EQ(Store(&operation), KVT_OK) << LastError();
    ASSERT_EQ(kvt_cache_wait(cache_, operation, 60000, nullptr), KVT_OK) << LastError();
  }

  kvt_runtime_t runtime_ = 0;
  kvt_model_t model_ = 0;
  kvt_codec_t codec_ = 0;
  kvt_cache_t cache_ = 0;
  std::vector<uint16_t> rows_ = std::vector<uint16_t>(4 * kTokens * 16);
  std::vector<void*> bases_;
  kvt_view_t view_;
  kvt_frame_spec_t spec_;
  std::vector<uint8_t> keys_;
  std::vector<kvt_status_t> results_ = std::vector<kvt_status_t>(kCount, -1);
};

TEST_F(CacheAbi, StoreLoadMatchGetPutRemove) {
  StoreAll();
  EXPECT_EQ(results_, std::vector<kvt_status_t>(kCount, KVT_OK));
  size_t matched = 0;
  ASSERT_EQ(kvt_cache_match(cache_, keys_.data(), kCount, &matched), KVT_OK);
  EXPECT_EQ(matched, kCount);

  const std::vector<uint16_t> before = rows_;
  std::fill(rows_.begin(), rows_.end(), uint16_t{0});
  uint64_t operation = 0;
  ASSERT_EQ(kvt_cache_submit_load(cache_, codec_, &view_, &spec_, kBlock, keys_.data(), kCount,
                                  results_.data(), 60000, &operation),
            KVT_OK)
      << LastError();
  kvt_completion_t done = {};
  ASSERT_EQ(kvt_cache_wait(cache_, operation, 60000, &done), KVT_OK) << LastError();
  EXPECT_EQ(done.items_ok, kCount);
  EXPECT_EQ(rows_, before);

  size_t needed = 0;
  ASSERT_EQ(kvt_cache_get(cache_, keys_.data(), nullptr, 0, &needed), KVT_OK);
  std::vector<uint8_t> frame(needed);
  EXPECT_EQ(kvt_cache_get(cache_, keys_.data(), frame.data(), needed - 1, &needed), KVT_ERR_BUFFER_TOO_SMALL);
  ASSERT_EQ(kvt_cache_get(cache_, keys_.data(), frame.data(), frame.size(), &needed), KVT_OK);
  EXPECT_EQ(kvt_frame_verify(frame.data(), frame.size()), KVT_OK);

  size_t removed = 0;
  ASSERT_EQ(kvt_cache_remove(cache_, keys_.data(), kCount, &removed), KVT_OK);
  EXPECT_EQ(removed, kCount);
  EXPECT_EQ(kvt_cache_get(cache_, keys_.data(), nullptr, 0, &needed), KVT_ERR_NOT_FOUND);

  const uint64_t length = frame.size();
  ASSERT_EQ(kvt_cache_submit_put(cache_, keys_.data(), 1, frame.data(), &length, results_.data(), 60000,
                                 &operation),
            KVT_OK);
  ASSERT_EQ(kvt_cache_wait(cache_, operation, 60000, &done), KVT_OK) << LastError();
  EXPECT_EQ(done.bytes, length);
  kvt_cache_stats_t stats = {};
  stats.struct_size = sizeof stats;
  ASSERT_EQ(kvt_cache_stats(cache_, &stats), KVT_OK);
  EXPECT_EQ(stats.frames, 1u);
  EXPECT_EQ(stats.bytes, length);
  uint64_t used = 0;
  ASSERT_EQ(kvt_runtime_memory_used(runtime_, &used), KVT_OK);
  EXPECT_GE(used, length);
}

TEST_F(CacheAbi, TheFailureOfAnOperationHasItsText) {
  uint64_t operation = 0;
  ASSERT_EQ(kvt_cache_submit_load(cache_, codec_, &view_, &spec_, kBlock, keys_.data(), kCount,
                                  results_.data(), 60000, &operation),
            KVT_OK);
  EXPECT_EQ(kvt_cache_wait(cache_, operation, 60000, nullptr), KVT_ERR_NOT_FOUND);
  EXPECT_NE(LastError().find("item 0: no frame under "), std::string::npos) << LastError();
  EXPECT_EQ(kvt_cache_wait(cache_, operation, 0, nullptr), KVT_ERR_NOT_FOUND);
}

TEST_F(CacheAbi, CompletionsArePolled) {
  uint64_t operation = 0;
  ASSERT_EQ(Store(&operation), KVT_OK);
  int32_t fd = -1;
  ASSERT_EQ(kvt_cache_event_fd(cache_, &fd), KVT_OK);
  pollfd ready = {fd, POLLIN, 0};
  ASSERT_EQ(poll(&ready, 1, 60000), 1);
  kvt_completion_t completions[4];
  size_t count = 0;
  ASSERT_EQ(kvt_cache_poll(cache_, completions, 4, &count), KVT_OK);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(completions[0].operation, operation);
  EXPECT_EQ(completions[0].status, KVT_OK);
  EXPECT_EQ(kvt_cache_cancel(cache_, operation), KVT_ERR_NOT_FOUND);
}

TEST_F(CacheAbi, BadArgumentsAreNamedAndChangeNothing) {
  uint64_t operation = 77;
  const auto refused = [&](kvt_status_t status, kvt_status_t expected, const std::string& name) {
    EXPECT_EQ(status, expected) << LastError();
    EXPECT_NE(LastError().find(name), std::string::npos) << LastError();
    EXPECT_EQ(operation, 77u);
  };
  refused(Store(&operation, 0), KVT_ERR_INVALID_ARGUMENT, "block_tokens is 0");
  refused(Store(&operation, 24), KVT_ERR_INVALID_ARGUMENT, "block_tokens is 24");
  refused(Store(&operation, 32), KVT_ERR_OUT_OF_RANGE, "64 tokens");
  refused(Store(&operation, kBlock, size_t{1} << 40), KVT_ERR_INVALID_ARGUMENT, "count");
  spec_.token_begin = UINT64_MAX;
  refused(Store(&operation), KVT_ERR_OUT_OF_RANGE, "18446744073709551615");
  spec_.token_begin = 0;
  std::fill(keys_.begin() + KVT_KEY_BYTES, keys_.begin() + 2 * KVT_KEY_BYTES, uint8_t{0});
  refused(Store(&operation), KVT_ERR_INVALID_ARGUMENT, "key 1");
  const uint64_t length = 0;
  refused(
      kvt_cache_submit_put(cache_, keys_.data(), 1, keys_.data(), &length, results_.data(), 1000, &operation),
      KVT_ERR_INVALID_ARGUMENT, "lengths[0] is 0");
  refused(kvt_cache_submit_put(cache_, nullptr, 1, keys_.data(), &length, results_.data(), 1000, &operation),
          KVT_ERR_INVALID_ARGUMENT, "keys is NULL");
  refused(kvt_cache_submit_put(cache_, keys_.data(), 1, keys_.data(), &length, nullptr, 1000, &operation),
          KVT_ERR_INVALID_ARGUMENT, "results is NULL");
  refused(kvt_cache_wait(cache_, 1, -1, nullptr), KVT_ERR_INVALID_ARGUMENT, "timeout_ms");
  kvt_cache_t other = 0;
  refused(kvt_cache_open(runtime_, "tape:", 5, &other), KVT_ERR_UNSUPPORTED, "tape:");
  refused(kvt_cache_open(runtime_, "mem:?capacity=lots", 18, &other), KVT_ERR_INVALID_ARGUMENT, "capacity");
  refused(kvt_cache_open(runtime_, nullptr, 0, &other), KVT_ERR_INVALID_ARGUMENT, "url");
  kvt_cache_stats_t stats = {};
  refused(kvt_cache_stats(cache_, &stats), KVT_ERR_INVALID_ARGUMENT, "struct_size");
}

TEST_F(CacheAbi, ALengthThatNoTextHasIsRefused) {
  kvt_cache_t cache = 0;
  EXPECT_EQ(kvt_cache_open(runtime_, "mem:", SIZE_MAX, &cache), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(LastError().find("url_len is 18446744073709551615"), std::string::npos) << LastError();
  kvt_codec_options_t coding;
  kvt_codec_options_init(&coding, sizeof coding);
  coding.name = "raw";
  coding.name_len = SIZE_MAX;
  kvt_codec_t codec = 0;
  EXPECT_EQ(kvt_codec_create(model_, &coding, &codec), KVT_ERR_INVALID_ARGUMENT);
  kvt_meter_t meter = 0;
  ASSERT_EQ(kvt_meter_create(runtime_, &meter), KVT_OK);
  uint64_t request = 0;
  EXPECT_EQ(kvt_request_begin(meter, "raw", SIZE_MAX, &request), KVT_ERR_INVALID_ARGUMENT);
  kvt_meter_destroy(meter);
  kvt_node_options_t endpoint;
  kvt_node_options_init(&endpoint, sizeof endpoint);
  endpoint.model = model_;
  endpoint.listen = "tcp://127.0.0.1:0";
  endpoint.listen_len = SIZE_MAX;
  kvt_node_t node = 0;
  EXPECT_EQ(kvt_node_open(runtime_, &endpoint, &node), KVT_ERR_INVALID_ARGUMENT);
  endpoint.listen = nullptr;
  endpoint.listen_len = 0;
  ASSERT_EQ(kvt_node_open(runtime_, &endpoint, &node), KVT_OK) << LastError();
  kvt_peer_t peer = 0;
  EXPECT_EQ(kvt_node_connect(node, "tcp://127.0.0.1:1", SIZE_MAX, 1000, &peer), KVT_ERR_INVALID_ARGUMENT);
  kvt_node_destroy(node);
}

TEST_F(CacheAbi, HandlesOfEveryWrongKindAreRefused) {
  size_t count = 0;
  int32_t fd = -1;
  EXPECT_EQ(kvt_cache_event_fd(runtime_, &fd), KVT_ERR_WRONG_HANDLE);
  EXPECT_EQ(kvt_cache_match(codec_, keys_.data(), 1, &count), KVT_ERR_WRONG_HANDLE);
  EXPECT_NE(kvt_cache_match(0, keys_.data(), 1, &count), KVT_OK);
  kvt_cache_t cache = 0;
  EXPECT_EQ(kvt_cache_open(cache_, "mem:", 4, &cache), KVT_ERR_WRONG_HANDLE);
  kvt_cache_destroy(cache_);
  kvt_cache_destroy(cache_);
  kvt_cache_destroy(0);
  EXPECT_EQ(kvt_cache_close(cache_, 0), KVT_ERR_STALE_HANDLE);
  EXPECT_EQ(kvt_cache_remove(cache_, keys_.data(), 1, nullptr), KVT_ERR_STALE_HANDLE);
}

TEST_F(CacheAbi, CloseThenDestroyWithWorkInFlight) {
  uint64_t operation = 0;
  std::vector<std::vector<kvt_status_t>> results(20);
  StoreMany(&results, &operation);
  ASSERT_EQ(kvt_cache_close(cache_, 60000), KVT_OK) << LastError();
  EXPECT_EQ(Store(&operation), KVT_ERR_CLOSED);
  // What ended before is still to be had.
  EXPECT_EQ(kvt_cache_wait(cache_, operation, 0, nullptr), KVT_OK) << LastError();
  kvt_cache_destroy(cache_);
  ASSERT_EQ(kvt_cache_open(runtime_, "mem:", 4, &cache_), KVT_OK);
  StoreMany(&results, &operation);
  kvt_cache_destroy(cache_);
}

}  // namespace
