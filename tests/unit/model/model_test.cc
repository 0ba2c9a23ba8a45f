#include "model/model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "unit/model/model_options.h"

namespace kvt {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(ModelTest, CanonicalBytesAndFingerprintAreThoseOfTheDocumentation) {
  const auto model = MakeModel(KvOptions());
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(Hex(AsBytes(model->canonical())),
            "6b7661727465742d6d6f64656c2d3100"
            "01000000"
            "20000000"
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
            "00000000"
            "1e000000"
            "03000000"
            "40000000"
            "40000000"
            "02000000"
            "01000000"
            "00000000"
            "40000000"
            "00000000006af840"
            "00000000"
            "000000000000f03f");
  EXPECT_EQ(Hex(Bytes(model->fingerprint())), "20259ad5389b8b5f1ce670669da7a0da");
  EXPECT_EQ(model->streams(), 2u);
  EXPECT_EQ(model->head_dim(0), 64u);
  EXPECT_EQ(MakeModel(MlaOptions())->streams(), 1u);
}

struct Edit {
  const char* field;
  std::function<void(kvt_model_options_t*)> apply;
  const char* value;
};

// Each edit breaks one field; the message names it and its value.
TEST(ModelTest, BadFieldsAreRefusedByNameAndValue) {
  static const double nan_factor[32] = {1, kNan}, zero_factor[32] = {0}, negative_factor[32] = {1, 1, -2};
  using O = kvt_model_options_t;
  const Edit edits[] = {
      {"layout", [](O* o) { o->layout = 0; }, "0"},
      {"layout", [](O* o) { o->layout = 3; }, "3"},
      {"model_id_len", [](O* o) { o->model_id_len = 0; }, "0"},
      {"model_id_len", [](O* o) { o->model_id_len = 65; }, "65"},
      {"model_id", [](O* o) { o->model_id = nullptr; }, "NULL"},
      {"adapter_len", [](O* o) { o->adapter = kModelId, o->adapter_len = 65; }, "65"},
      {"adapter", [](O* o) { o->adapter_len = 4; }, "NULL"},
      {"layers", [](O* o) { o->layers = 0; }, "0"},
      {"layers", [](O* o) { o->layers = 1025; }, "1025"},
      {"kv_heads", [](O* o) { o->kv_heads = 0; }, "0"},
      {"kv_heads", [](O* o) { o->kv_heads = UINT32_MAX; }, "4294967295"},
      {"k_dim", [](O* o) { o->k_dim = 0; }, "0"},
      {"k_dim", [](O* o) { o->k_dim = 8193; }, "8193"},
      {"v_dim", [](O* o) { o->v_dim = 0; }, "0"},
      {"v_dim", [](O* o) { o->v_dim = 8193; }, "8193"},
      {"element", [](O* o) { o->element = 0; }, "0"},
      {"element", [](O* o) { o->element = 6; }, "6"},
      {"rope_style", [](O* o) { o->rope_style = 3; }, "3"},
      {"rope_dims", [](O* o) { o->rope_dims = 0; }, "0"},
      {"rope_dims", [](O* o) { o->rope_dims = 63; }, "63"},
      {"rope_dims", [](O* o) { o->rope_dims = 66; }, "66"},
      {"rope_dims", [](O* o) { o->rope_offset = 2; }, "64"},
      {"rope_dims", [](O* o) { o->rope_offset = UINT32_MAX; }, "64"},
      {"rope_base", [](O* o) { o->rope_base = kNan; }, "nan"},
      {"rope_base", [](O* o) { o->rope_base = kInf; }, "inf"},
      {"rope_base", [](O* o) { o->rope_base = 1; }, "1"},
      {"rope_base", [](O* o) { o->rope_base = -10000; }, "-10000"},
      {"rope_factor_count", [](O* o) { o->rope_factors = zero_factor, o->rope_factor_count = 31; }, "31"},
      {"rope_factors", [](O* o) { o->rope_factor_count = 32; }, "NULL"},
      {"rope_factors[1]", [](O* o) { o->rope_factors = nan_factor, o->rope_factor_count = 32; }, "nan"},
      {"rope_factors[0]", [](O* o) { o->rope_factors = zero_factor, o->rope_factor_count = 32; }, "0"},
      {"rope_factors[2]", [](O* o) { o->rope_factors = negative_factor, o->rope_factor_count = 32; }, "-2"},
      {"rope_magnitude", [](O* o) { o->rope_magnitude = 0; }, "0"},
      {"rope_magnitude", [](O* o) { o->rope_magnitude = kNan; }, "nan"},
      {"rope_dims", [](O* o) { o->rope_style = KVT_ROPE_NONE; }, "64"},
      {"rope_base", [](O* o) { o->rope_style = KVT_ROPE_NONE, o->rope_dims = 0; }, "100000"},
      {"kv_heads", [](O* o) { *o = MlaOptions(), o->kv_heads = 2; }, "2"},
      {"v_dim", [](O* o) { *o = MlaOptions(), o->v_dim = 512; }, "512"},
  };
  for (const Edit& edit : edits) {
    kvt_model_options_t options = KvOptions();
    edit.apply(&options);
    const auto model = Model::Create(options);
    ASSERT_FALSE(model.ok()) << edit.field << " " << edit.value;
    EXPECT_EQ(CodeOf(model.status()), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(model.status().message()),
                HasSubstr(absl::StrCat("kvt_model_options.", edit.field, " is ", edit.value, ",")));
  }
}

// Every edit gives another fingerprint, and the comparison names the field and both values.
TEST(ModelTest, EveryFieldIsPartOfTheFingerprint) {
  static const uint8_t other_id[32] = {9};
  static double factors[32];
  std::fill(std::begin(factors), std::end(factors), 2.0);
  using O = kvt_model_options_t;
  struct Change {
    std::function<void(O*)> apply;
    const char *field, *left, *right;
  };
  const Change changes[] = {
      {[](O* o) { *o = MlaOptions(); }, "layout", "kv", "mla"},
      {[](O* o) { o->model_id = other_id; }, "model_id", "0001020304050607", "0900000000000000"},
      {[](O* o) { o->model_id_len = 31; }, "model_id from byte 31", "(32 bytes)", "(31 bytes)"},
      {[](O* o) { o->adapter = kModelId, o->adapter_len = 2; }, "adapter", "none", "0001"},
      {[](O* o) { o->layers = 31; }, "layers", "30", "31"},
      {[](O* o) { o->kv_heads = 4; }, "kv_heads", "3", "4"},
      {[](O* o) { o->k_dim = 128; }, "k_dim", "64", "128"},
      {[](O* o) { o->v_dim = 32; }, "v_dim", "64", "32"},
      {[](O* o) { o->element = KVT_ELEMENT_BF16; }, "element", "f16", "bf16"},
      {[](O* o) { o->rope_style = KVT_ROPE_HALF_SPLIT; }, "rope_style", "interleaved", "half-split"},
      {[](O* o) { o->rope_offset = 2, o->rope_dims = 62; }, "rope_offset", "0", "2"},
      {[](O* o) { o->rope_dims = 32; }, "rope_dims", "64", "32"},
      {[](O* o) { o->rope_base = 100000.00000000001; }, "rope_base", "100000", "100000.00000000001"},
      {[](O* o) { o->rope_factors = factors, o->rope_factor_count = 32; }, "rope_factor_count", "0", "32"},
      {[](O* o) { o->rope_magnitude = 1.5; }, "rope_magnitude", "1", "1.5"},
  };
  const auto model = MakeModel(KvOptions());
  std::set<Fingerprint> seen = {model->fingerprint()};
  for (const Change& change : changes) {
    kvt_model_options_t options = KvOptions();
    change.apply(&options);
    const auto other = MakeModel(options);
    ASSERT_NE(other, nullptr) << change.field;
    EXPECT_TRUE(seen.insert(other->fingerprint()).second) << change.field;
    const Status compared = Model::Compare(*model, *other);
    EXPECT_EQ(CodeOf(compared), KVT_ERR_MISMATCH);
    EXPECT_THAT(std::string(compared.message()), AllOf(HasSubstr(absl::StrCat("differ in ", change.field)),
                                                       HasSubstr(change.left), HasSubstr(change.right)));
  }
}

TEST(ModelTest, BytesDoNotMoveBetweenIdAndAdapter) {
  kvt_model_options_t left = KvOptions(), right = KvOptions();
  left.model_id_len = 4, left.adapter = kModelId + 4, left.adapter_len = 4;
  right.model_id_len = 5, right.adapter = kModelId + 5, right.adapter_len = 3;
  EXPECT_NE(MakeModel(left)->fingerprint(), MakeModel(right)->fingerprint());
}

TEST(ModelTest, FactorsThatAreAllOneAreNoFactors) {
  double ones[32];
  std::fill(std::begin(ones), std::end(ones), 1.0);
  kvt_model_options_t options = KvOptions();
  options.rope_factors = ones;
  options.rope_factor_count = 32;
  EXPECT_TRUE(Model::Compare(*MakeModel(KvOptions()), *MakeModel(options)).ok());
  ones[31] = 2;
  EXPECT_FALSE(Model::Compare(*MakeModel(KvOptions()), *MakeModel(options)).ok());
}

TEST(ModelAbiTest, HandleLivesFromCreateToDestroy) {
  kvt_model_options_t options = KvOptions();
  kvt_model_t model = 0;
  ASSERT_EQ(kvt_model_create(&options, &model), KVT_OK);
  uint8_t fingerprint[KVT_FINGERPRINT_BYTES];
  ASSERT_EQ(kvt_model_fingerprint(model, fingerprint), KVT_OK);
  EXPECT_EQ(Hex(Bytes(fingerprint)), "20259ad5389b8b5f1ce670669da7a0da");
  size_t needed = 0;
  ASSERT_EQ(kvt_model_canonical(model, nullptr, 0, &needed), KVT_OK);
  EXPECT_EQ(needed, 112u);
  uint8_t small[111];
  EXPECT_EQ(kvt_model_canonical(model, small, sizeof small, &needed), KVT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(kvt_model_compare(model, model), KVT_OK);

  kvt_shard_t shard;
  ASSERT_EQ(kvt_shard_init(model, &shard, sizeof shard), KVT_OK);
  EXPECT_EQ(shard.layer_begin, 0u);
  EXPECT_EQ(shard.layer_end, 30u);
  EXPECT_EQ(shard.head_end, 3u);
  EXPECT_EQ(shard.block_tokens, 16u);
  EXPECT_EQ(kvt_shard_init(model, &shard, 8), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_shard_init(model, nullptr, sizeof shard), KVT_ERR_INVALID_ARGUMENT);

  kvt_model_destroy(model);
  kvt_model_destroy(model);
  kvt_model_destroy(0);
  EXPECT_EQ(kvt_model_fingerprint(model, fingerprint), KVT_ERR_STALE_HANDLE);
  EXPECT_EQ(kvt_model_compare(model, model), KVT_ERR_STALE_HANDLE);
  EXPECT_EQ(kvt_shard_init(model, &shard, sizeof shard), KVT_ERR_STALE_HANDLE);
}

TEST(ModelAbiTest, FailedCreateLeavesTheHandleAlone) {
  kvt_model_options_t options = KvOptions();
  options.layers = 0;
  kvt_model_t model = 77;
  EXPECT_EQ(kvt_model_create(&options, &model), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(model, 77u);
  EXPECT_EQ(kvt_model_create(nullptr, &model), KVT_ERR_INVALID_ARGUMENT);
  options = KvOptions();
  EXPECT_EQ(kvt_model_create(&options, nullptr), KVT_ERR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kvt
