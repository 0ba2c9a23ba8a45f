#include "kvartet/quality_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "unit/tools/scratch_folder.h"

namespace kvt::cli {
namespace {

using ::testing::HasSubstr;

std::vector<DocumentSample> Samples() {
  DocumentSample sample{"a \"name\"", true, 512, 1.0 / 3, 0.7, {}};
  MethodSample method{0.1 + 0.2, 0.5, 7e-300, {10, 4, 5}, 12.5, 1e9 / 3, 17};
  sample.methods = {method, {}};
  return {sample, sample};
}

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(QualityState, GoesOnWhereItWas) {
  const ScratchFolder folder;
  const std::string path = folder.At("state");
  {
    QualityState state(path, "run");
    EXPECT_EQ(state.Find(3), nullptr);
    state.Add(3, Samples());
    state.Add(0, {});
    EXPECT_EQ(state.size(), 2u);
  }
  QualityState state(path, "run");
  ASSERT_NE(state.Find(3), nullptr);
  ASSERT_NE(state.Find(0), nullptr);
  EXPECT_EQ(state.Find(1), nullptr);
  EXPECT_TRUE(state.Find(0)->empty());
  ASSERT_EQ(state.Find(3)->size(), 2u);
  // Every bit of a number comes back.
  EXPECT_EQ(SampleToJson(state.Find(3)->at(1)), SampleToJson(Samples()[1]));
  EXPECT_EQ(state.Find(3)->at(0).methods[0].kl, 0.1 + 0.2);
  state.Finish();
  EXPECT_EQ(folder.Size(), 0u);
}

TEST(QualityState, ATornLineIsDroppedAndWritingGoesOn) {
  const ScratchFolder folder;
  const std::string path = folder.At("state");
  QualityState(path, "run").Add(1, Samples());
  const std::string whole = Contents(path);
  folder.Write("state", whole + whole.substr(whole.find('\n') + 1, 40));
  {
    QualityState state(path, "run");
    EXPECT_EQ(state.size(), 1u);
    state.Add(2, Samples());
  }
  EXPECT_EQ(QualityState(path, "run").size(), 2u);
}

TEST(QualityState, RefusesTheStateOfAnotherRunAndLeavesItAsItIs) {
  const ScratchFolder folder;
  const std::string path = folder.At("state");
  QualityState(path, "run").Add(1, Samples());
  const std::string before = Contents(path);
  EXPECT_THAT(Thrown([&] { QualityState(path, "other"); }), HasSubstr("is not the state of this run"));
  EXPECT_EQ(Contents(path), before);
  folder.Write("state", "something else\n");
  EXPECT_THAT(Thrown([&] { QualityState(path, "run"); }), HasSubstr("is not the state of this run"));
}

TEST(QualityState, RefusesLinesOfAnotherForm) {
  const ScratchFolder folder;
  const std::string path = folder.At("state");
  QualityState(path, "run").Add(1, {});
  const std::string empty = Contents(path).substr(0, Contents(path).find('\n') + 1);
  for (const char* line : {"{}", "[]", "7", "{\"document\":\"x\",\"samples\":[]}",
                           "{\"document\":1,\"samples\":[{\"name\":1}]}", "{\"document\":1,\"samples\":7}"}) {
    folder.Write("state", empty + line + "\n");
    EXPECT_THAT(Thrown([&] { QualityState(path, "run"); }), HasSubstr("is damaged")) << line;
  }
}

TEST(QualityState, NoPlaceToWrite) {
  EXPECT_NE(Thrown([&] { QualityState("/proc/none/state", "run"); }), "");
}

}  // namespace
}  // namespace kvt::cli
