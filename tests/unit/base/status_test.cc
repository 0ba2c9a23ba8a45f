#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>
#include <thread>

#include "base/boundary.h"
#include "base/sha256.h"

namespace kvt {
namespace {

std::string ErrorText() {
  size_t needed = 0;
  EXPECT_EQ(kvt_last_error(nullptr, 0, &needed), KVT_OK);
  std::string text(needed, '?');
  EXPECT_EQ(kvt_last_error(text.data(), text.size() + 1, nullptr), KVT_OK);
  return text;
}

TEST(StatusTest, KeepsTheCodeAndTheMessage) {
  const Status status = Error(KVT_ERR_STALLED, "peer 7");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(CodeOf(status), KVT_ERR_STALLED);
  const Status annotated = Annotate(status, "pull");
  EXPECT_EQ(CodeOf(annotated), KVT_ERR_STALLED);
  EXPECT_EQ(annotated.message(), "pull: peer 7");
  EXPECT_TRUE(Annotate(OkStatus(), "pull").ok());
  EXPECT_EQ(CodeOf(OkStatus()), KVT_OK);
  EXPECT_EQ(CodeOf(absl::InternalError("of another library")), KVT_ERR_INTERNAL);
}

TEST(StatusTest, ErrnoTellsCausesApart) {
  EXPECT_EQ(CodeOf(ErrnoError(ENOSPC, "write", "/a")), KVT_ERR_DISK_FULL);
  EXPECT_EQ(CodeOf(ErrnoError(EACCES, "open", "/a")), KVT_ERR_PERMISSION);
  EXPECT_EQ(CodeOf(ErrnoError(EADDRINUSE, "bind", "a:1")), KVT_ERR_ADDRESS_IN_USE);
  EXPECT_EQ(CodeOf(ErrnoError(ENOENT, "open", "/a")), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(CodeOf(ErrnoError(ECONNRESET, "recv", "a:1")), KVT_ERR_PEER_DEAD);
  EXPECT_EQ(CodeOf(ErrnoError(EMFILE, "open", "/a")), KVT_ERR_LIMIT);
  const Status other = ErrnoError(EIO, "read", "/a/b");
  EXPECT_EQ(CodeOf(other), KVT_ERR_IO);
  EXPECT_NE(other.message().find("read /a/b: "), absl::string_view::npos) << other;
  EXPECT_NE(other.message().find(absl::StrCat("errno ", EIO)), absl::string_view::npos) << other;
}

TEST(StatusTest, Names) {
  EXPECT_STREQ(kvt_status_name(KVT_OK), "KVT_OK");
  EXPECT_STREQ(kvt_status_name(KVT_ERR_LIMIT), "KVT_ERR_LIMIT");
  EXPECT_STREQ(kvt_status_name(-9999), "KVT_STATUS_UNKNOWN");
  EXPECT_EQ(kvt_abi_version(), KVT_ABI_VERSION);
}

TEST(LastErrorTest, StaysUntilTheNextSuccess) {
  EXPECT_EQ(Boundary([] { return Error(KVT_ERR_LOCKED, "the first"); }), KVT_ERR_LOCKED);
  EXPECT_EQ(ErrorText(), "the first");
  EXPECT_EQ(ErrorText(), "the first") << "reading does not clear";
  EXPECT_EQ(Boundary([] { return Error(KVT_ERR_IO, "the second"); }), KVT_ERR_IO);
  EXPECT_EQ(ErrorText(), "the second");
  VoidBoundary([] { throw std::runtime_error("lost"); });
  EXPECT_EQ(ErrorText(), "the second");
  EXPECT_EQ(Boundary([] { return OkStatus(); }), KVT_OK);
  EXPECT_EQ(ErrorText(), "");
}

TEST(LastErrorTest, CopyOutProtocol) {
  Report(Error(KVT_ERR_IO, "abcdef"));
  char buf[8] = "zzzzzzz";
  size_t needed = 0;
  EXPECT_EQ(kvt_last_error(buf, 5, &needed), KVT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(needed, 6u);
  EXPECT_EQ(buf[0], 'z');
  EXPECT_EQ(kvt_last_error(buf, 6, &needed), KVT_OK);
  EXPECT_EQ(std::string(buf), "abcdefz");
  EXPECT_EQ(kvt_last_error(nullptr, 0, nullptr), KVT_ERR_INVALID_ARGUMENT);
}

TEST(LastErrorTest, IsTheThreadsOwn) {
  Report(Error(KVT_ERR_IO, "mine"));
  std::thread([] {
    EXPECT_EQ(ErrorText(), "");
    Report(Error(KVT_ERR_IO, "theirs"));
    EXPECT_EQ(ErrorText(), "theirs");
  }).join();
  EXPECT_EQ(ErrorText(), "mine");
}

TEST(LastErrorTest, LongTextIsCutToTheLimit) {
  Report(Error(KVT_ERR_IO, std::string(5000, 'x')));
  EXPECT_EQ(ErrorText(), std::string(KVT_ERROR_TEXT_MAX - 1, 'x'));
}

TEST(LastErrorTest, IsUtf8WhateverIsRepeatedInIt) {
  const std::string euro = "\xe2\x82\xac";
  std::string text = std::string(KVT_ERROR_TEXT_MAX - 3, 'x') + euro;
  Report(Error(KVT_ERR_IO, text));
  EXPECT_EQ(ErrorText(), std::string(KVT_ERROR_TEXT_MAX - 3, 'x')) << "cut inside a character";
  Report(Error(KVT_ERR_IO, text.substr(1)));
  EXPECT_EQ(ErrorText(), std::string(KVT_ERROR_TEXT_MAX - 4, 'x') + euro);
  for (const std::string bad : {"\xff", "\xc0", "\x80", "\xed", "\xf5", "\xe2", "\xf0"}) {
    Report(Error(KVT_ERR_IO, "a" + bad + "b" + euro));
    EXPECT_EQ(ErrorText(), "a?b" + euro);
  }
  Report(Error(KVT_ERR_IO, "\xed\xa0\x80|\xf0\x9f\x98\x80"));
  EXPECT_EQ(ErrorText(), "???|\xf0\x9f\x98\x80");
}

TEST(BoundaryTest, NoExceptionGetsOut) {
  EXPECT_EQ(Boundary([]() -> Status { throw std::bad_alloc(); }), KVT_ERR_OUT_OF_MEMORY);
  EXPECT_EQ(Boundary([]() -> Status { throw std::runtime_error("deep"); }), KVT_ERR_INTERNAL);
  EXPECT_NE(ErrorText().find("deep"), std::string::npos);
  EXPECT_EQ(Boundary([]() -> Status { throw 7; }), KVT_ERR_INTERNAL);
}

TEST(Sha256Test, VectorsOfTheStandardInOneObject) {
  Sha256 sha;
  EXPECT_EQ(Hex(Bytes(*sha.Finish())), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  sha.Update(AsBytes("a"));
  sha.Update(AsBytes("bc"));
  EXPECT_EQ(Hex(Bytes(*sha.Finish())), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 pieces, whole;
  pieces.UpdateSized(AsBytes("ab"));
  pieces.UpdateU64(0x0807060504030201u);
  whole.Update(AsBytes(absl::string_view("\2\0\0\0ab\1\2\3\4\5\6\7\10", 14)));
  EXPECT_EQ(*pieces.Finish(), *whole.Finish());
}

}  // namespace
}  // namespace kvt
