#include "engine/f32_copy.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "unit/engine/gguf_writer.h"
#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kWidth = 64, kVocab = 96;

// A model of f32 weights: its copy has the same. What the shipped model's copy does is measured by `kvartet
// quality`.
std::string SmallModel() {
  GgufWriter model;
  model.Text("general.architecture", "llama").Text("tokenizer.ggml.model", "no_vocab");
  model.U32("llama.context_length", 512).U32("llama.embedding_length", kWidth).U32("llama.block_count", 1);
  model.U32("llama.feed_forward_length", kWidth).U32("llama.vocab_size", kVocab);
  model.U32("llama.attention.head_count", 2).U32("llama.attention.head_count_kv", 2);
  model.F32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  model.Tensor("token_embd.weight", {kWidth, kVocab}).Tensor("output_norm.weight", {kWidth});
  for (const char* name : {"attn_norm", "ffn_norm"})
    model.Tensor("blk.0." + std::string(name) + ".weight", {kWidth});
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
    model.Tensor("blk.0." + std::string(name) + ".weight", {kWidth, kWidth});
  return model.File();
}

// A path where nothing is, and nothing stays.
class NoFile {
 public:
  NoFile() : path_(TemporaryFile("").path() + ".copy") {}
  ~NoFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  bool LeftNothing() const {
    return !std::filesystem::exists(path_) && !std::filesystem::exists(path_ + ".new");
  }

 private:
  std::string path_;
};

TEST(F32Copy, TheShippedModelsCopyIsCounted) {
  const Result<uint64_t> bytes = F32WeightBytes(ModelPath());
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  EXPECT_EQ(*bytes, 134515008u * sizeof(float));
}

TEST(F32Copy, IsAWholeModelOfF32) {
  const TemporaryFile model(SmallModel());
  const NoFile copy;
  const Status written = WriteF32Copy(model.path(), copy.path());
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_FALSE(std::filesystem::exists(copy.path() + ".new"));
  const Result<std::unique_ptr<Engine>> engine = Engine::Open(copy.path());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  EXPECT_THAT((*engine)->geometry().description, HasSubstr("F32"));
  EXPECT_EQ((*engine)->geometry().kv,
            (KvGeometry{.layers = 1, .kv_heads = 2, .head_dim_k = 32, .head_dim_v = 32}));
}

TEST(F32Copy, AFileThatIsNoModelLeavesNothing) {
  const TemporaryFile model("not a model");
  const NoFile copy;
  const Status written = WriteF32Copy(model.path(), copy.path());
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, ErrorKind::kIo);
  EXPECT_THAT(written.error().message, HasSubstr("not a GGUF"));
  EXPECT_TRUE(copy.LeftNothing());
}

TEST(F32Copy, AModelThatTheEngineDoesNotTakeIsRefusedBeforeItIsRead) {
  GgufWriter model;
  model.Text("general.architecture", "nonsense");
  const TemporaryFile file(model.File());
  const NoFile copy;
  ASSERT_FALSE(WriteF32Copy(file.path(), copy.path()).ok());
  EXPECT_TRUE(copy.LeftNothing());
}

TEST(F32Copy, AFolderThatIsNotThereIsNamed) {
  const TemporaryFile model(SmallModel());
  const Status written = WriteF32Copy(model.path(), "/nonexistent/copy.gguf");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, ErrorKind::kIo);
  EXPECT_THAT(written.error().message, HasSubstr("'/nonexistent'"));
}

TEST(F32Copy, AnUnfinishedCopyOfAnEarlierRunIsReplaced) {
  const TemporaryFile model(SmallModel());
  const NoFile copy;
  std::ofstream(copy.path() + ".new", std::ios::binary) << std::string(1 << 20, 'x');
  const Status written = WriteF32Copy(model.path(), copy.path());
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_TRUE(Engine::Open(copy.path()).ok());
}

}  // namespace
}  // namespace kvt::engine
