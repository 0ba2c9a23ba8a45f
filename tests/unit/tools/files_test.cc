#include "kvartet/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "unit/tools/scratch_folder.h"

namespace kvt::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Files, AreReplacedWholeAndLeaveNothingBeside) {
  const ScratchFolder folder;
  const std::vector<uint8_t> head = {1, 2}, tail = {3};
  WriteFile(folder.At("file"), "old");
  WriteFile(folder.At("file"), {head, tail});
  EXPECT_THAT(ReadFile(folder.At("file")), ::testing::ElementsAre(1, 2, 3));
  CheckWritable(folder.At("file"));
  EXPECT_THAT(ReadFile(folder.At("file")), ::testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(folder.Size(), 1u);
}

TEST(Files, MakeTheirFolder) {
  const ScratchFolder folder;
  WriteFile(folder.At("a/b/file"), "text");
  EXPECT_EQ(ReadFile(folder.At("a/b/file")).size(), 4u);
}

TEST(Files, NamePathAndReason) {
  const ScratchFolder folder;
  EXPECT_THAT(Thrown([&] { ReadFile(folder.At("none")); }),
              AllOf(HasSubstr("/none: "), HasSubstr("No such")));
  EXPECT_THAT(Thrown([&] { CheckWritable(folder.At("")); }), HasSubstr("is a folder"));
  const std::string file = folder.Write("file", "text");
  EXPECT_THAT(Thrown([&] { CheckWritable(file + "/inside"); }),
              AllOf(HasSubstr("/inside: cannot be written"), HasSubstr("Not a directory")));
}

TEST(Files, AreWrittenByOneAtATime) {
  const ScratchFolder folder;
  WriteFile(folder.At("file"), "old");
  const int other = open(folder.At("file.new").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_THAT(Thrown([&] { WriteFile(folder.At("file"), "new"); }),
              HasSubstr("another process is writing it"));
  EXPECT_EQ(ReadFile(folder.At("file")).size(), 3u);
  close(other);
  WriteFile(folder.At("file"), "newer");
  EXPECT_EQ(ReadFile(folder.At("file")).size(), 5u);
}

TEST(Hex, GoesBothWays) {
  const std::vector<uint8_t> bytes = {0x00, 0x9f, 0xa0};
  EXPECT_EQ(Hex(bytes), "009fa0");
  std::vector<uint8_t> back(3);
  FromHex("009fa0", back);
  EXPECT_EQ(back, bytes);
  EXPECT_THAT(Thrown([&] { FromHex("009f", back); }), HasSubstr("is not 3 bytes"));
  EXPECT_THAT(Thrown([&] { FromHex("009fag", back); }), HasSubstr("is not 3 bytes"));
}

}  // namespace
}  // namespace kvt::cli
