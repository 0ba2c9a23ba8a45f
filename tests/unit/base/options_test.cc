#include "base/options.h"

#include <gtest/gtest.h>

#include <memory>

namespace kvt {
namespace {

// The structure as this library knows it, and as a newer header has it. The first release ended before
// `late`.
struct Options {
  uint32_t struct_size;
  uint32_t early;
  uint64_t late;
};
struct NewerOptions {
  Options known;
  uint64_t unknown[2];
};
constexpr size_t kFirstRelease = 8;
constexpr Options kDefaults = {sizeof(Options), 11, 22};

TEST(ReadStructTest, ShortStructureKeepsDefaultsAndIsNotReadPastItsEnd) {
  // Exactly as many bytes as struct_size says, so that a sanitizer sees a read too far.
  const auto bytes = std::make_unique<unsigned char[]>(kFirstRelease);
  const uint32_t fields[2] = {kFirstRelease, 99};
  std::memcpy(bytes.get(), fields, sizeof fields);
  Options out = kDefaults;
  ASSERT_TRUE(ReadStruct(reinterpret_cast<const Options*>(bytes.get()), "options", &out, kFirstRelease).ok());
  EXPECT_EQ(out.struct_size, sizeof(Options));
  EXPECT_EQ(out.early, 99u);
  EXPECT_EQ(out.late, 22u);
}

TEST(ReadStructTest, WholeStructure) {
  const Options in = {sizeof in, 1, 2};
  Options out = kDefaults;
  ASSERT_TRUE(ReadStruct(&in, "options", &out).ok());
  EXPECT_EQ(out.early, 1u);
  EXPECT_EQ(out.late, 2u);
}

TEST(ReadStructTest, LongStructureIsAcceptedWhileItsTailIsZero) {
  NewerOptions in = {};
  in.known = {sizeof in, 1, 2};
  Options out = kDefaults;
  ASSERT_TRUE(ReadStruct(&in.known, "options", &out, kFirstRelease).ok());
  EXPECT_EQ(out.struct_size, sizeof(Options));
  EXPECT_EQ(out.late, 2u);
  for (size_t i = sizeof(Options); i < sizeof in; ++i) {
    reinterpret_cast<unsigned char*>(&in)[i] = 1;
    out = kDefaults;
    const Status status = ReadStruct(&in.known, "options", &out, kFirstRelease);
    EXPECT_EQ(CodeOf(status), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(absl::StrCat("offset ", i)), absl::string_view::npos) << status;
    EXPECT_EQ(out.early, 11u);
    reinterpret_cast<unsigned char*>(&in)[i] = 0;
  }
}

TEST(ReadStructTest, AbsurdSizesAndNullAreRefused) {
  Options out = kDefaults;
  EXPECT_EQ(CodeOf(ReadStruct<Options>(nullptr, "options", &out)), KVT_ERR_INVALID_ARGUMENT);
  for (const uint32_t size : {0u, 4u, 7u, 4097u, UINT32_MAX}) {
    const Options in = {size, 1, 2};
    const Status status = ReadStruct(&in, "options", &out, kFirstRelease);
    EXPECT_EQ(CodeOf(status), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(absl::StrCat("options.struct_size is ", size)), absl::string_view::npos);
  }
}

TEST(WriteStructTest, WritesAsFarAsTheCallersStructureGoes) {
  const Options value = {sizeof value, 5, 6};
  Options part = {kFirstRelease, 0, 77};
  ASSERT_TRUE(WriteStruct(value, "out", &part, kFirstRelease).ok());
  EXPECT_EQ(part.struct_size, kFirstRelease);
  EXPECT_EQ(part.early, 5u);
  EXPECT_EQ(part.late, 77u);

  NewerOptions newer = {{sizeof newer, 0, 0}, {1, 2}};
  ASSERT_TRUE(WriteStruct(value, "out", &newer.known).ok());
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
  EXPECT_EQ(newer.known.late, 6u);
  EXPECT_EQ(newer.unknown[0] | newer.unknown[1], 0u);

  Options bad = {3, 1, 1};
  EXPECT_EQ(CodeOf(WriteStruct(value, "out", &bad)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bad.early, 1u);
  EXPECT_EQ(CodeOf(WriteStruct<Options>(value, "out", nullptr)), KVT_ERR_INVALID_ARGUMENT);
}

TEST(InitStructTest, FillsAsFarAsTheSizeReaches) {
  NewerOptions newer = {{0, 0, 0}, {1, 2}};
  InitStruct(kDefaults, &newer.known, sizeof newer);
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
  EXPECT_EQ(newer.known.late, 22u);
  EXPECT_EQ(newer.unknown[0] | newer.unknown[1], 0u);

  Options part = {1, 2, 3};
  InitStruct(kDefaults, &part, kFirstRelease, kFirstRelease);
  EXPECT_EQ(part.struct_size, kFirstRelease);
  EXPECT_EQ(part.early, 11u);
  EXPECT_EQ(part.late, 3u);

  Options untouched = {1, 2, 3};
  InitStruct(kDefaults, &untouched, 4);
  EXPECT_EQ(untouched.struct_size, 1u);
  InitStruct<Options>(kDefaults, nullptr, sizeof(Options));
}

TEST(CopyOutTest, ProbesFillsAndRefuses) {
  char buf[4] = {'x', 'x', 'x', 'x'};
  size_t needed = 0;
  EXPECT_TRUE(CopyOut("abc", 3, nullptr, 0, &needed).ok());
  EXPECT_EQ(needed, 3u);
  needed = 0;
  EXPECT_EQ(CodeOf(CopyOut("abc", 3, buf, 2, &needed)), KVT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(needed, 3u);
  EXPECT_EQ(buf[0], 'x');
  EXPECT_TRUE(CopyOut("abc", 3, buf, 4, nullptr).ok());
  EXPECT_EQ(std::string(buf, 4), "abcx");
  EXPECT_TRUE(CopyOut(nullptr, 0, buf, 4, &needed).ok());
  EXPECT_EQ(CodeOf(CopyOut("abc", 3, nullptr, 3, &needed)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(CopyOut("abc", 3, nullptr, 0, nullptr)), KVT_ERR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kvt
