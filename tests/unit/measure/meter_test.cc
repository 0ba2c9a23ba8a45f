// The meter: grouping, JSON, limits, threads, and the C ABI.
#include "measure/meter.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace kvt {
namespace {

class MeterTest : public ::testing::Test {
 protected:
  uint64_t now_ = 0;
  Meter meter_{nullptr, [this] { return now_; }};

  // A request with 1 ms in queue, `transfer_ms` in transfer and 2 ms more until its end.
  void Request(const char* way, uint64_t transfer_ms, uint64_t bytes) {
    const uint64_t id = meter_.Begin(way).value();
    ASSERT_TRUE(meter_.Part(id, KVT_PART_QUEUE).ok());
    now_ += 1000000;
    ASSERT_TRUE(meter_.Part(id, KVT_PART_TRANSFER).ok());
    now_ += transfer_ms * 1000000;
    ASSERT_TRUE(meter_.FirstToken(id).ok());
    now_ += 2000000;
    ASSERT_TRUE(meter_.Count(id, KVT_COUNTER_BYTES_MOVED, bytes).ok());
    ASSERT_TRUE(meter_.End(id).ok());
  }
};

TEST_F(MeterTest, JsonHasMeansByWay) {
  Request("raw", 10, 100);
  Request("lossy", 3, 30);
  Request("raw", 20, 100);
  const uint64_t aborted = meter_.Begin("raw").value();
  now_ += 5000000;
  ASSERT_TRUE(meter_.End(aborted).ok());
  ASSERT_TRUE(meter_.Count(0, KVT_COUNTER_CHECKSUMS, 9).ok());
  const auto json = nlohmann::json::parse(MeterJson(meter_.Sums()));
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["ways"].size(), 2u);
  const auto& raw = json["ways"][0];
  EXPECT_EQ(raw["way"], "raw");
  EXPECT_EQ(raw["requests"], 2);
  EXPECT_EQ(raw["unfinished"], 1);
  EXPECT_EQ(raw["ttft_ms"]["queue"], 1.0);
  EXPECT_EQ(raw["ttft_ms"]["prefill"], 0.0);
  EXPECT_EQ(raw["ttft_ms"]["transfer"], 15.0);
  EXPECT_EQ(raw["ttft_ms"]["total"], 16.0);
  EXPECT_EQ(raw["ttft_ms"].size(), 8u);
  EXPECT_EQ(raw["duration_ms"], 18.0);
  EXPECT_EQ(raw["counters"]["bytes_moved"], 200);
  EXPECT_EQ(json["ways"][1]["ttft_ms"]["total"], 4.0);
  EXPECT_EQ(json["counters"]["checksums"], 9);
}

TEST_F(MeterTest, JsonHasPercentilesByWay) {
  for (int i = 1; i <= 98; ++i) Request("raw", 10, 0);
  Request("raw", 100, 0);
  Request("raw", 1000, 0);
  Request("lossy", 3, 0);
  ASSERT_TRUE(meter_.Begin("open").ok());
  const auto json = nlohmann::json::parse(MeterJson(meter_.Sums()));
  const auto near = [](const nlohmann::json& value, double ms) {
    EXPECT_NEAR(value.get<double>(), ms, ms / 16) << value;
  };
  const auto& raw = json["ways"][0];
  const auto& parts = raw["ttft_percentiles_ms"];
  EXPECT_EQ(parts.size(), 8u);
  near(parts["transfer"]["p50"], 10);
  near(parts["transfer"]["p90"], 10);
  near(parts["transfer"]["p99"], 100);
  near(parts["queue"]["p99"], 1);
  near(parts["total"]["p99"], 101);
  near(raw["duration_percentiles_ms"]["p50"], 13);
  EXPECT_EQ(parts["prefill"]["p99"], 0.0);
  near(json["ways"][1]["ttft_percentiles_ms"]["total"]["p50"], 4);
  EXPECT_EQ(json["ways"][2]["ttft_percentiles_ms"]["total"]["p99"], 0.0);
  // A meter in a test has no runtime, so no operations.
  EXPECT_FALSE(json.contains("operations"));
}

TEST_F(MeterTest, EmptyMeterIsAnEmptyList) {
  const auto json = nlohmann::json::parse(MeterJson(meter_.Sums()));
  EXPECT_TRUE(json["ways"].is_array());
  EXPECT_TRUE(json["ways"].empty());
}

TEST_F(MeterTest, LabelsThatAreNotUtf8OrOfAWrongLengthAreRefused) {
  for (const std::string& way :
       {std::string(), std::string(65, 'x'), std::string("\xff"), std::string("\xc0\xaf"),
        std::string("\xed\xa0\x80"), std::string("\xe2\x82"), std::string("\xf5\x80\x80\x80"),
        std::string("a\x80"), std::string("\xf0\x80\x80\x80")})
    EXPECT_EQ(CodeOf(meter_.Begin(way).status()), KVT_ERR_INVALID_ARGUMENT) << way;
  for (const std::string& way :
       {std::string(64, 'x'), std::string("caf\xc3\xa9"), std::string("\xf0\x9f\x8e\xbb\"\n", 6)}) {
    const auto id = meter_.Begin(way);
    ASSERT_TRUE(id.ok()) << way;
    ASSERT_TRUE(meter_.End(*id).ok());
  }
  const auto json = nlohmann::json::parse(MeterJson(meter_.Sums()));
  EXPECT_EQ(json["ways"][2]["way"], "\xf0\x9f\x8e\xbb\"\n");
}

TEST_F(MeterTest, UnknownAndEndedRequestsAreNotFound) {
  const uint64_t id = meter_.Begin("raw").value();
  EXPECT_NE(id, 0u);
  ASSERT_TRUE(meter_.End(id).ok());
  EXPECT_EQ(CodeOf(meter_.End(id)), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(CodeOf(meter_.Part(id, KVT_PART_QUEUE)), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(CodeOf(meter_.FirstToken(0)), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(CodeOf(meter_.Attribute(~uint64_t{0}, 1, 2, 3)), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(CodeOf(meter_.Count(id, KVT_COUNTER_CHECKSUMS, 1)), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(CodeOf(meter_.Count(0, 0, 1)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(meter_.Count(0, 11, 1)), KVT_ERR_INVALID_ARGUMENT);
}

TEST_F(MeterTest, LabelsAreLimited) {
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(meter_.Begin(std::to_string(i)).ok());
  const auto refused = meter_.Begin("one more");
  EXPECT_EQ(CodeOf(refused.status()), KVT_ERR_LIMIT);
  EXPECT_NE(refused.status().message().find("one more"), std::string::npos);
  EXPECT_TRUE(meter_.Begin("0").ok());
}

TEST(MeterThreads, ManyThreadsLoseNothing) {
  Meter meter(nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&meter, t] {
      for (int i = 0; i < 500; ++i) {
        const uint64_t id = meter.Begin(t % 2 == 0 ? "even" : "odd").value();
        ASSERT_TRUE(meter.Part(id, KVT_PART_PREFILL).ok());
        ASSERT_TRUE(meter.Count(id, KVT_COUNTER_BLOCKS_HIT, 2).ok());
        ASSERT_TRUE(meter.Count(0, KVT_COUNTER_CHECKSUMS, 1).ok());
        ASSERT_TRUE(meter.FirstToken(id).ok());
        ASSERT_TRUE(meter.End(id).ok());
        if (i % 100 == 0) MeterJson(meter.Sums());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MeterSums sums = meter.Sums();
  ASSERT_EQ(sums.ways.size(), 2u);
  for (const WaySums& way : sums.ways) {
    EXPECT_EQ(way.requests, 1000u);
    EXPECT_EQ(way.counter(KVT_COUNTER_BLOCKS_HIT), 2000u);
    EXPECT_LE(Sum(way.times), way.duration_ns);
    EXPECT_EQ(Histogram::Counts(way.spread->total).total(), 1000u);
    EXPECT_EQ(Histogram::Counts(way.spread->parts[KVT_PART_DECODE - 1]).total(), 1000u);
  }
  EXPECT_EQ(sums.counters[KVT_COUNTER_CHECKSUMS - 1], 2000u);
}

TEST(MeterAbi, OneRequestThroughTheAbi) {
  kvt_runtime_t runtime = 0;
  ASSERT_EQ(kvt_runtime_create(nullptr, &runtime), KVT_OK);
  kvt_meter_t meter = 0;
  ASSERT_EQ(kvt_meter_create(runtime, &meter), KVT_OK);
  EXPECT_EQ(kvt_runtime_close(runtime, 0), KVT_ERR_BUSY);  // the meter is open

  char text[8192];
  size_t size = 0;
  ASSERT_EQ(kvt_meter_advice(meter, text, sizeof text, &size), KVT_OK);
  EXPECT_NE(std::string(text, size).find("Too little data"), std::string::npos);

  uint64_t request = 0;
  ASSERT_EQ(kvt_request_begin(meter, "raw", 3, &request), KVT_OK);
  EXPECT_EQ(kvt_request_part(meter, request, KVT_PART_PREFILL), KVT_OK);
  EXPECT_EQ(kvt_request_part(meter, request, 0), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_request_count(meter, request, KVT_COUNTER_BYTES_RAW, 4096), KVT_OK);
  EXPECT_EQ(kvt_request_first_token(meter, request), KVT_OK);
  EXPECT_EQ(kvt_request_attribute(meter, request, KVT_PART_PREFILL, KVT_PART_QUEUE, ~uint64_t{0}),
            KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(kvt_request_end(meter, request), KVT_OK);
  EXPECT_EQ(kvt_request_end(meter, request), KVT_ERR_NOT_FOUND);

  ASSERT_EQ(kvt_meter_json(meter, nullptr, 0, &size), KVT_OK);
  const size_t needed = size;
  size = 0;
  EXPECT_EQ(kvt_meter_json(meter, text, needed - 1, &size), KVT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(size, needed);
  ASSERT_EQ(kvt_meter_json(meter, text, sizeof text, &size), KVT_OK);
  const auto document = nlohmann::json::parse(std::string(text, size));
  EXPECT_EQ(document["operations"].size(), 6u);
  EXPECT_EQ(document["operations"]["pull_stream"]["ended"], 0);
  const auto way = document["ways"][0];
  double parts = 0;
  for (const auto& [name, value] : way["ttft_ms"].items()) parts += name == "total" ? 0 : value.get<double>();
  EXPECT_DOUBLE_EQ(parts, way["ttft_ms"]["total"].get<double>());

  EXPECT_EQ(kvt_request_begin(meter, nullptr, 3, &request), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_request_begin(meter, "raw", 3, nullptr), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_request_begin(runtime, "raw", 3, &request), KVT_ERR_WRONG_HANDLE);
  EXPECT_EQ(kvt_meter_create(meter, &meter), KVT_ERR_WRONG_HANDLE);
  EXPECT_EQ(kvt_meter_create(runtime, nullptr), KVT_ERR_INVALID_ARGUMENT);
  kvt_meter_destroy(meter);
  EXPECT_EQ(kvt_meter_json(meter, text, sizeof text, &size), KVT_ERR_STALE_HANDLE);
  kvt_meter_destroy(meter);
  EXPECT_EQ(kvt_runtime_close(runtime, 0), KVT_OK);
  kvt_runtime_destroy(runtime);
}

}  // namespace
}  // namespace kvt
