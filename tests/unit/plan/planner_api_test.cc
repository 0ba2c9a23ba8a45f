// The planner's C functions: handles, structures, and every field that is refused, by name and value.
#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "kvartet/planner.h"

namespace kvt::test {
namespace {

using ::testing::HasSubstr;

std::string LastError() {
  char message[KVT_ERROR_TEXT_MAX + 1] = "";
  kvt_last_error(message, KVT_ERROR_TEXT_MAX, nullptr);
  return message;
}

class PlannerApiTest : public testing::Test {
 protected:
  void SetUp() override {
    kvt_planner_options_init(&options_, sizeof options_);
    options_.rungs = rungs_;
    options_.rung_count = 2;
    ASSERT_EQ(kvt_planner_create(&options_, &planner_), KVT_OK);
    kvt_codec_request_init(&request_, sizeof request_);
    request_.bytes = 1 << 20;
    request_.bandwidth = 1e8;
    choice_.struct_size = sizeof choice_;
  }
  void TearDown() override { kvt_planner_destroy(planner_); }

  kvt_codec_rung_t rungs_[2] = {{.encode_rate = 1e9, .decode_rate = 1e9, .ratio = 2, .quality_class = 1},
                                {.encode_rate = 1e8, .decode_rate = 1e8, .ratio = 8, .quality_class = 2}};
  kvt_planner_options_t options_ = {};
  kvt_codec_request_t request_ = {};
  kvt_codec_choice_t choice_ = {};
  kvt_planner_t planner_ = 0;
};

TEST_F(PlannerApiTest, PicksAndLearns) {
  ASSERT_EQ(kvt_planner_pick_codec(planner_, &request_, &choice_), KVT_OK);
  EXPECT_EQ(choice_.bytes, request_.bytes);
  EXPECT_EQ(choice_.bandwidth, request_.bandwidth);
  EXPECT_GT(choice_.seconds, 0);
  EXPECT_EQ(kvt_planner_observe(planner_, &choice_, 0.01), KVT_OK);
  request_.quality_max = 0;
  ASSERT_EQ(kvt_planner_pick_codec(planner_, &request_, &choice_), KVT_OK);
  EXPECT_EQ(choice_.rung, KVT_RUNG_NONE);
  EXPECT_EQ(kvt_planner_observe(planner_, &choice_, 0.01), KVT_OK);
  double bandwidth = 0;
  ASSERT_EQ(kvt_planner_crossover(planner_, 0, 1, 1 << 20, &bandwidth), KVT_OK);
  EXPECT_GT(bandwidth, 1e7);
}

TEST_F(PlannerApiTest, RefusesOptionsByName) {
  const auto refuse = [&](auto change, const char* text) {
    const auto options = options_;
    const kvt_codec_rung_t rung = rungs_[1];
    change();
    kvt_planner_t planner = 77;
    EXPECT_EQ(kvt_planner_create(&options_, &planner), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(planner, 77u);
    EXPECT_THAT(LastError(), HasSubstr(text));
    options_ = options;
    rungs_[1] = rung;
  };
  refuse([&] { options_.struct_size = 3; }, "struct_size is 3");
  refuse([&] { options_.rung_count = 0; }, "rung_count is 0");
  refuse([&] { options_.rung_count = 257; }, "rung_count is 257");
  refuse([&] { options_.rungs = nullptr; }, "rungs is NULL");
  refuse([&] { rungs_[1].encode_rate = 0; }, "rungs[1].encode_rate is 0");
  refuse([&] { rungs_[1].decode_rate = NAN; }, "rungs[1].decode_rate is nan");
  refuse([&] { rungs_[1].ratio = INFINITY; }, "rungs[1].ratio is inf");
  refuse([&] { rungs_[1].reserved = 1; }, "rungs[1].reserved is 1");
  EXPECT_EQ(kvt_planner_create(nullptr, &planner_), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_planner_create(&options_, nullptr), KVT_ERR_INVALID_ARGUMENT);
}

TEST_F(PlannerApiTest, RefusesRequestsByName) {
  const auto refuse = [&](auto change, const char* text) {
    const auto request = request_;
    change();
    choice_.rung = 55;
    EXPECT_EQ(kvt_planner_pick_codec(planner_, &request_, &choice_), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(choice_.rung, 55u);
    EXPECT_THAT(LastError(), HasSubstr(text));
    request_ = request;
  };
  refuse([&] { request_.bytes = 0; }, "kvt_codec_request.bytes is 0");
  refuse([&] { request_.bytes = UINT64_MAX; }, "bytes is 18446744073709551615");
  refuse([&] { request_.segments = 0; }, "kvt_codec_request.segments is 0");
  refuse([&] { request_.bandwidth = 0; }, "kvt_codec_request.bandwidth is 0");
  refuse([&] { request_.bandwidth = NAN; }, "bandwidth is nan");
  refuse([&] { request_.reserved = 9; }, "reserved is 9");
  EXPECT_EQ(kvt_planner_pick_codec(planner_, nullptr, &choice_), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_planner_pick_codec(planner_, &request_, nullptr), KVT_ERR_INVALID_ARGUMENT);
}

TEST_F(PlannerApiTest, RefusesReportsByName) {
  ASSERT_EQ(kvt_planner_pick_codec(planner_, &request_, &choice_), KVT_OK);
  const kvt_codec_choice_t good = choice_;
  const auto refuse = [&](auto change, double seconds, const char* text) {
    change();
    EXPECT_EQ(kvt_planner_observe(planner_, &choice_, seconds), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_THAT(LastError(), HasSubstr(text));
    choice_ = good;
  };
  refuse([&] { choice_.rung = 2; }, 1, "rung is 2");
  refuse([&] { choice_.bytes = 0; }, 1, "kvt_codec_choice.bytes is 0");
  refuse([&] { choice_.segments = 0; }, 1, "kvt_codec_choice.segments is 0");
  refuse([&] { choice_.bandwidth = -1; }, 1, "kvt_codec_choice.bandwidth is -1");
  refuse([&] { choice_.reserved = 1; }, 1, "kvt_codec_choice.reserved is 1");
  refuse([] {}, 0, "seconds is 0");
  refuse([] {}, NAN, "seconds is nan");
  double bandwidth = -1;
  EXPECT_EQ(kvt_planner_crossover(planner_, 2, 1, 1, &bandwidth), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(kvt_planner_crossover(planner_, KVT_RUNG_NONE, 1, 1, &bandwidth), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(kvt_planner_crossover(planner_, 0, 0, 1, &bandwidth), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_planner_crossover(planner_, 0, 1, 0, &bandwidth), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_planner_crossover(planner_, 0, 1, 1, nullptr), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bandwidth, -1);
}

TEST_F(PlannerApiTest, StaleHandles) {
  const kvt_planner_t old = planner_;
  kvt_planner_destroy(planner_);
  planner_ = 0;
  EXPECT_EQ(kvt_planner_pick_codec(old, &request_, &choice_), KVT_ERR_STALE_HANDLE);
  choice_.bytes = 1;
  EXPECT_EQ(kvt_planner_observe(old, &choice_, 1), KVT_ERR_STALE_HANDLE);
  double bandwidth = 0;
  EXPECT_EQ(kvt_planner_crossover(old, 0, 1, 1, &bandwidth), KVT_ERR_STALE_HANDLE);
  kvt_planner_destroy(old);
  kvt_planner_destroy(0);
}

}  // namespace
}  // namespace kvt::test
