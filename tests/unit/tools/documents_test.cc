#include "kvartet/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "unit/engine/model_fixture.h"
#include "unit/tools/scratch_folder.h"

namespace kvt::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Zipped(const ScratchFolder& folder, const std::string& name, const std::string& text) {
  gzFile file = gzopen(folder.At(name).c_str(), "wb");
  EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
  return folder.At(name);
}

std::string Numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "Line " + std::to_string(i) + " of the text.\n";
  return text;
}

TEST(ReadText, GivesPlainAndZippedTextAsItIs) {
  const ScratchFolder folder;
  const std::string text = "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n";
  EXPECT_EQ(ReadText(folder.Write("plain", text)), text);
  EXPECT_EQ(ReadText(Zipped(folder, "zipped.gz", text)), text);
}

TEST(ReadText, NamesPathAndReason) {
  const ScratchFolder folder;
  const auto error = [&](const std::string& name, const std::string& bytes) {
    const std::string path = folder.Write(name, bytes);
    return Thrown([&] { ReadText(path); });
  };
  EXPECT_THAT(error("empty", ""), AllOf(HasSubstr("/empty: "), HasSubstr("has no text")));
  EXPECT_THAT(error("blank", " \n\t\r\n"), HasSubstr("has no text"));
  EXPECT_THAT(error("nul", std::string("ab\0cd", 5)), HasSubstr("is binary, not text: byte 2 is 0"));
  EXPECT_THAT(error("latin", "caf\xe9 au lait"), HasSubstr("is not UTF-8 text at byte 3"));
  EXPECT_THAT(error("cut", "caf\xc3"), HasSubstr("at byte 3"));
  EXPECT_THAT(error("overlong", "\xc0\xaf"), HasSubstr("at byte 0"));
  EXPECT_THAT(error("overlong3", "\xe0\x80\xaf"), HasSubstr("at byte 0"));
  EXPECT_THAT(error("surrogate", "a\xed\xa0\x80"), HasSubstr("at byte 1"));
  EXPECT_THAT(error("beyond", "\xf4\x90\x80\x80"), HasSubstr("at byte 0"));
  EXPECT_THAT(Thrown([&] { ReadText(folder.At("none")); }), HasSubstr("/none: cannot be read: No such file"));
  EXPECT_THAT(Thrown([&] { ReadText(folder.At("")); }), HasSubstr("is a folder"));
}

TEST(ReadText, RefusesADamagedArchive) {
  const ScratchFolder folder;
  const std::string whole = Zipped(folder, "whole.gz", Numbers(5000));
  std::ifstream file(whole, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const std::string half = folder.Write("half.gz", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(Thrown([&] { ReadText(half); }), HasSubstr("half.gz: cannot be read"));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  const std::string bent = folder.Write("bent.gz", bytes);
  EXPECT_THAT(Thrown([&] { ReadText(bent); }), HasSubstr("bent.gz: cannot be read"));
}

TEST(ReadText, CutsALongTextAtACharacter) {
  const ScratchFolder folder;
  const std::string text = std::string(kMaxTextBytes - 1, 'a') + "\xe2\x82\xac and more";
  EXPECT_EQ(ReadText(folder.Write("long", text)), text.substr(0, kMaxTextBytes - 1));
}

TEST(ReadDocuments, CutsEachTextInOrder) {
  const ScratchFolder folder;
  const std::vector<std::string> paths = {folder.Write("b", Numbers(100)), folder.Write("a", Numbers(30))};
  const std::vector<int32_t> tokens = *engine::TestEngine().Tokenize(Numbers(100), true, false);
  const auto size = static_cast<int32_t>(tokens.size() * 2 / 5);
  const std::vector<TextDocument> documents =
      ReadDocuments(engine::TestEngine(), paths, {.min_tokens = 64, .max_tokens = size, .per_file = 3});
  ASSERT_EQ(documents.size(), 4u);
  EXPECT_EQ(documents[0].name, "b");
  EXPECT_EQ(documents[1].name, "b#2");
  EXPECT_EQ(documents[2].name, "b#3");
  EXPECT_EQ(documents[2].index, 2);
  EXPECT_EQ(documents[3].name, "a");
  EXPECT_EQ(documents[0].tokens.size(), static_cast<size_t>(size));
  EXPECT_EQ(documents[1].tokens.size(), static_cast<size_t>(size));
  EXPECT_LT(documents[2].tokens.size(), static_cast<size_t>(size));
  EXPECT_TRUE(std::equal(documents[0].tokens.begin(), documents[0].tokens.end(), tokens.begin()));
}

TEST(ReadDocuments, NamesATextThatIsTooShort) {
  const ScratchFolder folder;
  const std::vector<std::string> paths = {folder.Write("short", "Only a few words.")};
  EXPECT_THAT(Thrown([&] { ReadDocuments(engine::TestEngine(), paths, {}); }),
              AllOf(HasSubstr("/short: is too short: it has"), HasSubstr("a document needs 1000")));
}

TEST(FilesIn, SortsAndTakesAMissingFolder) {
  const ScratchFolder folder;
  folder.Write("2", "");
  folder.Write("1", "");
  EXPECT_THAT(FilesIn(folder.At("")), ::testing::ElementsAre(folder.At("1"), folder.At("2")));
  EXPECT_TRUE(FilesIn(folder.At("none")).empty());
}

}  // namespace
}  // namespace kvt::cli
