#include <gmock/gmock.h>

#include <fstream>

#include "unit/engine/gguf_writer.h"
#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::HasSubstr;

std::string Head(size_t bytes) {
  std::string head(bytes, '\0');
  std::ifstream(ModelPath(), std::ios::binary).read(head.data(), static_cast<std::streamsize>(bytes));
  return head;
}

Error OpenError(const std::string& bytes) {
  const TemporaryFile file(bytes);
  Result<std::unique_ptr<Engine>> engine = Engine::Open(file.path());
  if (engine.ok()) {
    ADD_FAILURE() << "opened";
    return Error{ErrorKind::kInvalid, ""};
  }
  return engine.error();
}

TEST(Open, GeometryIsWhatTheModelHas) {
  const Geometry& geometry = TestEngine().geometry();
  EXPECT_EQ(geometry.architecture, "llama");
  EXPECT_THAT(geometry.description, HasSubstr("Q4_1"));
  EXPECT_EQ(geometry.kv, (KvGeometry{.layers = 30, .kv_heads = 3, .head_dim_k = 64, .head_dim_v = 64}));
  EXPECT_EQ(geometry.kv.token_bytes(), 23040u);
  EXPECT_EQ(geometry.rope.style, RopeStyle::kInterleaved);
  EXPECT_EQ(geometry.rope.dims, 64);
  EXPECT_EQ(geometry.rope.base, 100000);
  EXPECT_TRUE(geometry.rope.factors_known);
  EXPECT_TRUE(geometry.rope.factors.empty());
  EXPECT_EQ(geometry.vocab, 49152);
  EXPECT_EQ(geometry.trained_context, 8192);
  EXPECT_TRUE(TestEngine().IsEnd(geometry.eos));
  EXPECT_FALSE(TestEngine().IsEnd(-1));
  EXPECT_FALSE(TestEngine().IsEnd(geometry.vocab));
  EXPECT_EQ(geometry.weights_sha256[0], 0xb1);
  EXPECT_EQ(geometry.weights_sha256[1], 0x79);
}

TEST(Open, SaysWhenThereIsNoSuchFile) {
  Result<std::unique_ptr<Engine>> engine = Engine::Open("/nonexistent/model.gguf");
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().kind, ErrorKind::kIo);
  EXPECT_THAT(engine.error().message, HasSubstr("/nonexistent/model.gguf"));
}

TEST(Open, RefusesWhatIsNoGguf) {
  EXPECT_THAT(OpenError("").message, HasSubstr("not a GGUF"));
  EXPECT_THAT(OpenError("GG").message, HasSubstr("not a GGUF"));
  EXPECT_THAT(OpenError(std::string(4096, 'x')).message, HasSubstr("not a GGUF"));
  EXPECT_THAT(OpenError("GGUF" + std::string(4096, '\xff')).message, HasSubstr("truncated or damaged"));
}

TEST(Open, RefusesATruncatedModelWithTheReason) {
  EXPECT_THAT(OpenError(Head(1000)).message, HasSubstr("truncated or damaged"));
  EXPECT_THAT(OpenError(Head(1 << 20)).message, HasSubstr("truncated"));
  const Error tensors = OpenError(Head(8 << 20));
  EXPECT_EQ(tensors.kind, ErrorKind::kIo);
  EXPECT_THAT(tensors.message, HasSubstr("its tensors need 98362432"));
}

TEST(Open, RefusesMetadataWithoutAModel) {
  EXPECT_THAT(OpenError(GgufWriter().File()).message, HasSubstr("general.architecture"));
  EXPECT_THAT(OpenError(GgufWriter().U32("general.architecture", 7).File()).message,
              HasSubstr("general.architecture"));
  const Error empty = OpenError(GgufWriter().Text("general.architecture", "llama").File());
  EXPECT_EQ(empty.kind, ErrorKind::kEngine);
  EXPECT_THAT(empty.message, HasSubstr("architecture 'llama'"));
  EXPECT_THAT(OpenError(GgufWriter().Text("general.architecture", "nonesuch").File()).message,
              HasSubstr("'nonesuch'"));
}

TEST(Open, RefusesASplitModelBeforeLoadingIt) {
  const Error split =
      OpenError(GgufWriter().Text("general.architecture", "llama").U32("split.count", 4).File());
  EXPECT_EQ(split.kind, ErrorKind::kUnsupported);
  EXPECT_THAT(split.message, HasSubstr("split.count = 4"));
}

TEST(Open, SessionOutlivesItsEngine) {
  std::unique_ptr<Session> session;
  {
    Result<std::unique_ptr<Engine>> engine = Engine::Open(ModelPath());
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    Result<std::unique_ptr<Session>> opened = (*engine)->NewSession({.context_tokens = 256});
    ASSERT_TRUE(opened.ok());
    session = std::move(*opened);
  }
  EXPECT_TRUE(session->DecodeOne(1).ok());
}

}  // namespace
}  // namespace kvt::engine
