// kvt_select_tokens: the copy-out protocol, and every field that it refuses, by name and value.
#include <gmock/gmock.h>

#include <cstddef>

#include "unit/select/select_fixture.h"

namespace kvt::test {
namespace {

using ::testing::HasSubstr;

class SelectApiTest : public testing::Test {
 protected:
  void SetUp() override {
    kvt_model_options_t options;
    kvt_model_options_init(&options, sizeof options);
    options.model_id = reinterpret_cast<const uint8_t*>("weights");
    options.model_id_len = 7;
    options.layers = scene_.model()->layers();
    options.kv_heads = scene_.model()->kv_heads();
    options.k_dim = scene_.model()->head_dim(0);
    options.v_dim = scene_.model()->head_dim(1);
    ASSERT_EQ(kvt_model_create(&options, &model_), KVT_OK);
    kvt_select_options_init(&options_, sizeof options_);
    options_.budget = 50;
  }
  void TearDown() override { kvt_model_destroy(model_); }

  kvt_status_t Call(uint32_t* tokens, size_t cap, size_t* needed) {
    return kvt_select_tokens(model_, scene_.memory().description(), &scene_.attention(), &options_, tokens,
                             cap, needed);
  }
  static std::string LastError() {
    char message[KVT_ERROR_TEXT_MAX + 1] = "";
    kvt_last_error(message, KVT_ERROR_TEXT_MAX, nullptr);
    return message;
  }
  void ExpectRefused(kvt_status_t status, const char* text) {
    uint32_t tokens[200];
    size_t needed = 0;
    EXPECT_EQ(Call(tokens, 200, &needed), status);
    EXPECT_THAT(LastError(), HasSubstr(text));
  }

  Scene scene_{64, 6};
  kvt_model_t model_ = 0;
  kvt_select_options_t options_ = {};
};

TEST_F(SelectApiTest, CopiesOut) {
  size_t needed = 0;
  ASSERT_EQ(Call(nullptr, 0, &needed), KVT_OK);
  EXPECT_EQ(needed, 4u * 50);
  std::vector<uint32_t> tokens(needed);
  EXPECT_EQ(Call(tokens.data(), needed - 1, &needed), KVT_ERR_BUFFER_TOO_SMALL);
  ASSERT_EQ(Call(tokens.data(), tokens.size(), &needed), KVT_OK);
  EXPECT_EQ(tokens, scene_.Choose(options_));
  EXPECT_EQ(Call(nullptr, 3, &needed), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(Call(nullptr, 0, nullptr), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(
      kvt_select_tokens(model_ + 1, scene_.memory().description(), nullptr, nullptr, nullptr, 0, &needed),
      KVT_ERR_STALE_HANDLE);
}

TEST_F(SelectApiTest, RefusesOptionsByName) {
  const kvt_select_options_t good = options_;
  const auto refuse = [&](auto change, const char* text) {
    options_ = good;
    change(&options_);
    ExpectRefused(KVT_ERR_INVALID_ARGUMENT, text);
  };
  refuse([](auto* o) { o->policy = 9; }, "policy is 9");
  refuse([](auto* o) { o->scope = 0; }, "scope is 0");
  refuse([](auto* o) { o->budget = 0; }, "budget is 0");
  refuse([](auto* o) { o->window = 47; }, "window is 47");
  refuse([](auto* o) { o->window = UINT32_MAX; }, "window is 4294967295");
  refuse([](auto* o) { o->pool = 4; }, "pool is 4");
  refuse([](auto* o) { o->pool = 65; }, "pool is 65");
  refuse([](auto* o) { o->pooling = 3; }, "pooling is 3");
  refuse([](auto* o) { o->relevance = 1.5f; }, "relevance is 1.5");
  refuse([](auto* o) { o->similarity = NAN; }, "similarity is nan");
  refuse([](auto* o) { o->scale = -1; }, "scale is -1");
  refuse([](auto* o) { o->reserved = 1; }, "reserved is 1");
}

TEST_F(SelectApiTest, RefusesAttentionByName) {
  const kvt_attention_t good = scene_.attention();
  const auto refuse = [&](auto change, const char* text, kvt_status_t status = KVT_ERR_INVALID_ARGUMENT) {
    scene_.attention() = good;
    change(&scene_.attention());
    ExpectRefused(status, text);
  };
  refuse([](auto* a) { a->kind = 0; }, "kind is 0");
  refuse([](auto* a) { a->layer_begin = 2; }, "layer_end is 2");
  refuse([](auto* a) { a->layer_end = 3; }, "layers [0, 3)", KVT_ERR_OUT_OF_RANGE);
  refuse([](auto* a) { a->heads = 3; }, "heads is 3");
  refuse([](auto* a) { a->heads = 0; }, "heads is 0");
  refuse([](auto* a) { a->heads = UINT32_MAX - 1; }, "heads is 4294967294");
  refuse([](auto* a) { a->rows = 0; }, "rows is 0");
  refuse([](auto* a) { a->rows = 65; }, "rows is 65");
  refuse([](auto* a) { a->base = nullptr; }, "base is NULL");
  refuse([](auto* a) { a->row_stride = 6; }, "row_stride is 6");
  const uint32_t repeated[] = {3, 9, 9, 10, 11, 12}, beyond[] = {3, 9, 10, 11, 12, 64};
  refuse([&](auto* a) { a->row_tokens = repeated; }, "row_tokens[2] is 9");
  refuse([&](auto* a) { a->row_tokens = beyond; }, "row_tokens[5] is 64", KVT_ERR_OUT_OF_RANGE);
}

TEST_F(SelectApiTest, AttentionOfTheFirstReleaseIsRead) {
  size_t needed = 0;
  std::vector<uint32_t> tokens(200);
  // What lies behind a shorter structure is not read.
  scene_.attention().row_tokens = tokens.data();
  scene_.attention().struct_size = offsetof(kvt_attention_t, row_tokens);
  EXPECT_EQ(Call(tokens.data(), tokens.size(), &needed), KVT_OK);
  scene_.attention().struct_size = offsetof(kvt_attention_t, row_tokens) - 1;
  ExpectRefused(KVT_ERR_INVALID_ARGUMENT, "kvt_attention.struct_size");
  kvt_attention_t old = {};
  old.rows = 7;
  kvt_attention_init(&old, offsetof(kvt_attention_t, row_tokens));
  EXPECT_EQ(old.struct_size, offsetof(kvt_attention_t, row_tokens));
  EXPECT_EQ(old.rows, 0u);
}

TEST_F(SelectApiTest, ImportanceCopiesOut) {
  kvt_importance_options_t options;
  kvt_importance_options_init(&options, sizeof options);
  options.distance = 16;
  const auto call = [&](int8_t* importance, size_t cap, size_t* needed) {
    return kvt_token_importance(model_, scene_.memory().description(), &scene_.attention(), &options,
                                importance, cap, needed);
  };
  size_t needed = 0;
  ASSERT_EQ(call(nullptr, 0, &needed), KVT_OK);
  EXPECT_EQ(needed, 64u);
  std::vector<int8_t> importance(needed, 99);
  EXPECT_EQ(call(importance.data(), needed - 1, &needed), KVT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(importance[0], 99);
  ASSERT_EQ(call(importance.data(), needed, nullptr), KVT_OK);
  for (const int8_t value : importance) {
    EXPECT_GE(value, KVT_IMPORTANCE_MIN);
    EXPECT_LE(value, KVT_IMPORTANCE_MAX);
  }
  EXPECT_EQ(call(nullptr, 3, &needed), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(call(nullptr, 0, nullptr), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(
      kvt_token_importance(model_, scene_.memory().description(), nullptr, nullptr, nullptr, 0, &needed),
      KVT_ERR_INVALID_ARGUMENT);
  Memory fp8(scene_.model(), Layout::kDense, KVT_ELEMENT_FP8_E4M3, 64);
  EXPECT_EQ(
      kvt_token_importance(model_, fp8.description(), &scene_.attention(), nullptr, nullptr, 0, &needed),
      KVT_ERR_UNSUPPORTED);
}

TEST_F(SelectApiTest, RefusesImportanceOptionsByName) {
  const auto refuse = [&](auto change, const char* text) {
    kvt_importance_options_t options;
    kvt_importance_options_init(&options, sizeof options);
    change(&options);
    size_t needed = 0;
    EXPECT_EQ(kvt_token_importance(model_, scene_.memory().description(), &scene_.attention(), &options,
                                   nullptr, 0, &needed),
              KVT_ERR_INVALID_ARGUMENT);
    EXPECT_THAT(LastError(), HasSubstr(text));
  };
  refuse([](auto* o) { o->shrinkage = -1; }, "shrinkage is -1");
  refuse([](auto* o) { o->shrinkage = NAN; }, "shrinkage is nan");
  refuse([](auto* o) { o->floor = 1.5f; }, "floor is 1.5");
  refuse([](auto* o) { o->centre = 17; }, "centre is 17");
  refuse([](auto* o) { o->centre = NAN; }, "centre is nan");
  refuse([](auto* o) { o->scale = -1; }, "scale is -1");
  refuse([](auto* o) { o->reserved = 1; }, "reserved is 1");
}

TEST_F(SelectApiTest, NeedsAttentionAndKeysThatCompute) {
  size_t needed = 0;
  EXPECT_EQ(kvt_select_tokens(model_, scene_.memory().description(), nullptr, &options_, nullptr, 0, &needed),
            KVT_ERR_INVALID_ARGUMENT);
  options_.policy = KVT_SELECT_RECENT;
  EXPECT_EQ(kvt_select_tokens(model_, scene_.memory().description(), nullptr, &options_, nullptr, 0, &needed),
            KVT_OK);
  options_.policy = KVT_SELECT_SNAPKV;
  Memory fp8(scene_.model(), Layout::kDense, KVT_ELEMENT_FP8_E4M3, 64);
  EXPECT_EQ(kvt_select_tokens(model_, fp8.description(), &scene_.attention(), &options_, nullptr, 0, &needed),
            KVT_ERR_UNSUPPORTED);
  scene_.GiveRows();
  EXPECT_EQ(kvt_select_tokens(model_, fp8.description(), &scene_.attention(), &options_, nullptr, 0, &needed),
            KVT_OK);
}

TEST_F(SelectApiTest, MergesCopyOutAndApply) {
  size_t needed = 0;
  ASSERT_EQ(Call(nullptr, 0, &needed), KVT_OK);
  std::vector<uint32_t> tokens(needed);
  ASSERT_EQ(Call(tokens.data(), tokens.size(), &needed), KVT_OK);
  kvt_merge_options_t options;
  kvt_merge_options_init(&options, sizeof options);
  const auto call = [&](size_t count, kvt_merge_t* merges, size_t cap) {
    return kvt_select_merges(model_, scene_.memory().description(), &scene_.attention(), &options,
                             tokens.data(), count, merges, cap, &needed);
  };
  ASSERT_EQ(call(tokens.size(), nullptr, 0), KVT_OK);
  ASSERT_GT(needed, 1u);
  std::vector<kvt_merge_t> merges(needed);
  EXPECT_EQ(call(tokens.size(), merges.data(), needed - 1), KVT_ERR_BUFFER_TOO_SMALL);
  ASSERT_EQ(call(tokens.size(), merges.data(), needed), KVT_OK);
  EXPECT_EQ(kvt_merges_apply(model_, scene_.memory().description(), tokens.data(), tokens.size(),
                             merges.data(), merges.size()),
            KVT_OK);
  EXPECT_EQ(call(tokens.size() - 1, nullptr, 0), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(call(0, nullptr, 0), KVT_ERR_INVALID_ARGUMENT);
  std::swap(tokens[3], tokens[4]);
  EXPECT_EQ(call(tokens.size(), nullptr, 0), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_merges_apply(model_, scene_.memory().description(), nullptr, 1, nullptr, 0),
            KVT_ERR_INVALID_ARGUMENT);
  for (const auto& [change, text] : std::vector<std::pair<void (*)(kvt_merge_options_t*), const char*>>{
           {[](auto* o) { o->scope = 3; }, "scope is 3"},
           {[](auto* o) { o->window = 0; }, "window is 0"},
           {[](auto* o) { o->span = 0; }, "span is 0"},
           {[](auto* o) { o->span = 1025; }, "span is 1025"},
           {[](auto* o) { o->scale = NAN; }, "scale is nan"},
           {[](auto* o) { o->reserved = 1; }, "reserved is 1"}}) {
    kvt_merge_options_init(&options, sizeof options);
    change(&options);
    EXPECT_EQ(call(tokens.size(), nullptr, 0), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_THAT(LastError(), HasSubstr(text));
  }
}

TEST_F(SelectApiTest, ThoughtsCopyOut) {
  kvt_thought_options_t options;
  kvt_thought_options_init(&options, sizeof options);
  size_t needed = 0;
  float sparsity[2] = {-1, -1};
  const auto measure = [&](size_t cap) {
    return kvt_thought_sparsity(model_, scene_.memory().description(), &scene_.attention(), &options,
                                sparsity, cap, &needed);
  };
  EXPECT_EQ(measure(1), KVT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(needed, 2u);
  EXPECT_EQ(sparsity[0], -1);
  ASSERT_EQ(measure(2), KVT_OK);
  EXPECT_GE(sparsity[1], 0);
  kvt_thought_t thoughts[2] = {};
  for (kvt_thought_t& thought : thoughts) {
    thought.kind = KVT_THOUGHT_TRANSITION;
    thought.length = thought.held = 30;
  }
  EXPECT_EQ(kvt_thoughts_step(&options, nullptr, 1), KVT_ERR_INVALID_ARGUMENT);
  ASSERT_EQ(kvt_thoughts_step(&options, thoughts, 2), KVT_OK);
  EXPECT_EQ(thoughts[0].keep, 15u);
  EXPECT_EQ(thoughts[1].keep, 30u);
  const auto choose = [&](uint32_t* tokens, size_t cap) {
    return kvt_select_thoughts(model_, scene_.memory().description(), &options, thoughts, 2, tokens, cap,
                               &needed);
  };
  ASSERT_EQ(choose(nullptr, 0), KVT_OK);
  ASSERT_EQ(needed, 4u * 49);
  std::vector<uint32_t> tokens(needed);
  EXPECT_EQ(choose(tokens.data(), needed - 1), KVT_ERR_BUFFER_TOO_SMALL);
  ASSERT_EQ(choose(tokens.data(), needed), KVT_OK);
  float low = 7, high = 7;
  EXPECT_EQ(kvt_thought_thresholds(sparsity, 2, &low, &high), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(low, 7);
  EXPECT_EQ(kvt_thought_thresholds(sparsity, 2, nullptr, &high), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_thought_thresholds(sparsity, 2, &low, nullptr), KVT_ERR_INVALID_ARGUMENT);
  for (const auto& [change, text] : std::vector<std::pair<void (*)(kvt_thought_options_t*), const char*>>{
           {[](auto* o) { o->scope = 3; }, "scope is 3"},
           {[](auto* o) { o->budget = 0; }, "budget is 0"},
           {[](auto* o) { o->least = 0; }, "least is 0"},
           {[](auto* o) { o->least = NAN; }, "least is nan"},
           {[](auto* o) { o->scale = -1; }, "scale is -1"},
           {[](auto* o) { o->prefix = 5; }, "prefix 5"}}) {
    kvt_thought_options_init(&options, sizeof options);
    change(&options);
    EXPECT_NE(choose(nullptr, 0), KVT_OK);
    EXPECT_THAT(LastError(), HasSubstr(text));
  }
}

}  // namespace
}  // namespace kvt::test
