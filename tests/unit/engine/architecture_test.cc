// Small models of other architectures, with made-up weights: which are taken, which are refused and how.
#include <gmock/gmock.h>

#include "unit/engine/gguf_writer.h"
#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint64_t kEmbd = 64, kHead = 32, kFf = 64, kVocab = 96;
constexpr uint32_t kLayers = 2;

GgufWriter Model(const std::string& architecture) {
  GgufWriter model;
  model.Text("general.architecture", architecture);
  model.Text("tokenizer.ggml.model", "no_vocab");
  model.U32(architecture + ".context_length", 512);
  model.U32(architecture + ".embedding_length", kEmbd);
  model.U32(architecture + ".block_count", kLayers);
  model.U32(architecture + ".feed_forward_length", kFf);
  model.U32(architecture + ".vocab_size", kVocab);
  model.F32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  model.Tensor("token_embd.weight", {kEmbd, kVocab});
  model.Tensor("output_norm.weight", {kEmbd});
  return model;
}

// Two query heads over one KV head of 32 elements.
GgufWriter AttentionModel(const std::string& architecture) {
  GgufWriter model = Model(architecture);
  model.U32(architecture + ".attention.head_count", 2);
  model.U32(architecture + ".attention.head_count_kv", 1);
  for (uint32_t i = 0; i < kLayers; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    model.Tensor(block + "attn_norm.weight", {kEmbd});
    model.Tensor(block + "attn_q.weight", {kEmbd, kEmbd});
    model.Tensor(block + "attn_k.weight", {kEmbd, kHead});
    model.Tensor(block + "attn_v.weight", {kEmbd, kHead});
    model.Tensor(block + "attn_output.weight", {kEmbd, kEmbd});
    model.Tensor(block + "ffn_norm.weight", {kEmbd});
    model.Tensor(block + "ffn_gate.weight", {kEmbd, kFf});
    model.Tensor(block + "ffn_up.weight", {kEmbd, kFf});
    model.Tensor(block + "ffn_down.weight", {kFf, kEmbd});
  }
  return model;
}

void ExpectRefused(const GgufWriter& model, const std::string& architecture, const std::string& field) {
  const TemporaryFile file(model.File());
  Result<std::unique_ptr<Engine>> engine = Engine::Open(file.path());
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().kind, ErrorKind::kUnsupported) << engine.error().message;
  EXPECT_THAT(engine.error().message, AllOf(HasSubstr("'" + architecture + "'"), HasSubstr(field)));
}

TEST(Architecture, HalfSplitRopeWithLinearScalingIsTaken) {
  GgufWriter model = AttentionModel("qwen2");
  model.Text("qwen2.rope.scaling.type", "linear");
  model.F32("qwen2.rope.scaling.factor", 2);
  const TemporaryFile file(model.File());
  Result<std::unique_ptr<Engine>> opened = Engine::Open(file.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const Engine& engine = **opened;
  EXPECT_EQ(engine.geometry().kv,
            (KvGeometry{.layers = 2, .kv_heads = 1, .head_dim_k = 32, .head_dim_v = 32}));
  EXPECT_EQ(engine.geometry().rope.style, RopeStyle::kHalfSplit);
  EXPECT_EQ(engine.geometry().rope.dims, 32);
  EXPECT_THAT(engine.geometry().rope.factors, Each(2.0));
  EXPECT_EQ(engine.geometry().vocab, 96);
  EXPECT_EQ(engine.geometry().eos, -1);

  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 200; ++i) prompt.push_back(i * i % 96);
  const auto from = *engine.NewSession({.context_tokens = 256});
  const auto to = *engine.NewSession({.context_tokens = 256});
  ASSERT_TRUE(from->Prefill(prompt).ok());
  for (int32_t begin = 0; begin < 200; begin += 50) {
    ASSERT_TRUE(to->Commit(*from->Export(begin, begin + 50)).ok());
  }
  EXPECT_TRUE(SameBits(Continue(*from, 5, 8).logits, Continue(*to, 5, 8).logits));
}

TEST(Architecture, WithoutAVocabularyTextIsRefusedNotAborted) {
  const TemporaryFile file(AttentionModel("llama").File());
  Result<std::unique_ptr<Engine>> engine = Engine::Open(file.path());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  EXPECT_EQ((*engine)->geometry().rope.style, RopeStyle::kInterleaved);
  EXPECT_THAT((*engine)->Tokenize("text", true, false).error().message, HasSubstr("no vocabulary"));
  EXPECT_FALSE((*engine)->Detokenize(std::vector<int32_t>{1}).ok());
  EXPECT_FALSE((*engine)->Chat("a", "b", "c").ok());
  EXPECT_FALSE((*engine)->IsEnd(1));
}

TEST(Architecture, RecurrentStateIsRefused) {
  constexpr uint64_t kInner = 2 * kEmbd, kState = 16, kRank = 4, kConv = 4;
  GgufWriter model = Model("mamba");
  model.U32("mamba.ssm.conv_kernel", kConv);
  model.U32("mamba.ssm.inner_size", kInner);
  model.U32("mamba.ssm.state_size", kState);
  model.U32("mamba.ssm.time_step_rank", kRank);
  for (uint32_t i = 0; i < kLayers; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    model.Tensor(block + "attn_norm.weight", {kEmbd});
    model.Tensor(block + "ssm_in.weight", {kEmbd, 2 * kInner});
    model.Tensor(block + "ssm_conv1d.weight", {kConv, kInner});
    model.Tensor(block + "ssm_conv1d.bias", {kInner});
    model.Tensor(block + "ssm_x.weight", {kInner, kRank + 2 * kState});
    model.Tensor(block + "ssm_dt.weight", {kRank, kInner});
    model.Tensor(block + "ssm_dt.bias", {kInner});
    model.Tensor(block + "ssm_a", {kState, kInner});
    model.Tensor(block + "ssm_d", {kInner});
    model.Tensor(block + "ssm_out.weight", {kInner, kEmbd});
  }
  ExpectRefused(model, "mamba", "recurrent state");
}

TEST(Architecture, SlidingWindowIsRefused) {
  GgufWriter model = AttentionModel("gemma3");
  model.U32("gemma3.attention.sliding_window", 128);
  for (uint32_t i = 0; i < kLayers; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    model.Tensor(block + "post_attention_norm.weight", {kEmbd});
    model.Tensor(block + "attn_q_norm.weight", {kHead});
    model.Tensor(block + "attn_k_norm.weight", {kHead});
    model.Tensor(block + "post_ffw_norm.weight", {kEmbd});
  }
  ExpectRefused(model, "gemma3", "attention.sliding_window = 128");
}

TEST(Architecture, PositionsOfSeveralPartsAreRefused) {
  GgufWriter model = AttentionModel("qwen2vl");
  model.I32s("qwen2vl.rope.dimension_sections", {4, 6, 6, 0});
  ExpectRefused(model, "qwen2vl", "rope.dimension_sections");
}

TEST(Architecture, MissingTensorIsNamed) {
  GgufWriter model = Model("llama");
  model.U32("llama.attention.head_count", 2);
  const TemporaryFile file(model.File());
  Result<std::unique_ptr<Engine>> engine = Engine::Open(file.path());
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message, AllOf(HasSubstr("cannot load"), HasSubstr("blk.0.")));
}

}  // namespace
}  // namespace kvt::engine
