#include "base/url.h"

#include <gtest/gtest.h>

namespace kvt {
namespace {

TEST(UrlTest, PartsOfGoodUrls) {
  struct Good {
    const char *text, *scheme, *rest;
  };
  for (const Good& good :
       {Good{"mem:", "mem", ""}, Good{"MEM:?size=1GiB", "mem", ""}, Good{"file:/var/kv", "file", "/var/kv"},
        Good{"file:///var/kv", "file", "/var/kv"}, Good{"file:relative/dir?size=1", "file", "relative/dir"},
        Good{"tcp://127.0.0.1:7000?insecure=1", "tcp", "127.0.0.1:7000"},
        Good{"tcp:[::1]:7000", "tcp", "[::1]:7000"}, Good{"unix:/tmp/s", "unix", "/tmp/s"},
        Good{"unix:///tmp/s", "unix", "/tmp/s"}, Good{"mem:?", "mem", ""}}) {
    const auto url = Url::Parse(good.text);
    ASSERT_TRUE(url.ok()) << url.status();
    EXPECT_EQ(url->scheme, good.scheme) << good.text;
    EXPECT_EQ(url->rest, good.rest) << good.text;
  }
}

TEST(UrlTest, Options) {
  const auto url = Url::Parse("mem:?size=2MiB&rate=1Gbit&a=1&b=0&c=yes&empty=&x=1=2");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(*url->Size("size", 7), 2097152u);
  EXPECT_EQ(*url->Size("absent", 7), 7u);
  EXPECT_EQ(*url->BytesPerSecond("rate", 7), 125000000u);
  EXPECT_EQ(*url->BytesPerSecond("absent", 7), 7u);
  EXPECT_TRUE(*url->Flag("a"));
  EXPECT_FALSE(*url->Flag("b"));
  EXPECT_FALSE(*url->Flag("absent"));
  EXPECT_EQ(CodeOf(url->Flag("c").status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(url->Flag("empty").status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(url->Size("c", 0).status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(url->options.at("x"), "1=2");
  EXPECT_TRUE(url->CheckOptions({"size", "rate", "a", "b", "c", "empty", "x"}).ok());
  const Status unknown = url->CheckOptions({"size", "rate", "a", "b", "c", "empty"});
  EXPECT_EQ(CodeOf(unknown), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(unknown.message().find("x=1=2"), absl::string_view::npos);
}

TEST(UrlTest, BadUrls) {
  for (const std::string& bad :
       {std::string(""), std::string("/var/kv"), std::string(":x"), std::string("mem:?=1"),
        std::string("mem:?a=1&a=2"), std::string("file:/a\0b", 9), std::string("file://tmp/x"),
        std::string("unix://run/x.sock"), "file:/" + std::string(4096, 'x')}) {
    EXPECT_EQ(CodeOf(Url::Parse(bad).status()), KVT_ERR_INVALID_ARGUMENT) << bad;
  }
}

TEST(UrlTest, Sizes) {
  EXPECT_EQ(*ParseSize("0"), 0u);
  EXPECT_EQ(*ParseSize("17"), 17u);
  EXPECT_EQ(*ParseSize("17B"), 17u);
  EXPECT_EQ(*ParseSize("3KB"), 3000u);
  EXPECT_EQ(*ParseSize("3KiB"), 3072u);
  EXPECT_EQ(*ParseSize("1.5GiB"), 1610612736u);
  EXPECT_EQ(*ParseSize("200GiB"), 214748364800u);
  EXPECT_EQ(*ParseSize("2TB"), 2000000000000u);
  EXPECT_EQ(*ParseSize("1TiB"), 1099511627776u);
  for (const char* bad : {"", "GiB", "-1", "1 GiB", "1gib", "1e3", "1..5", ".", "0x10", "nan", "inf", "1PiB",
                          "99999999999999999999", "9999999999TiB", "1Gbit"}) {
    EXPECT_EQ(CodeOf(ParseSize(bad).status()), KVT_ERR_INVALID_ARGUMENT) << bad;
  }
}

TEST(UrlTest, Rates) {
  EXPECT_EQ(*ParseRate("8bit"), 1u);
  EXPECT_EQ(*ParseRate("50Mbit"), 6250000u);
  EXPECT_EQ(*ParseRate("2.5Gbit"), 312500000u);
  EXPECT_EQ(*ParseRate("1Tbit"), 125000000000u);
  EXPECT_EQ(*ParseRate("3MB/s"), 3000000u);
  EXPECT_EQ(*ParseRate("1MiB"), 1048576u);
  for (const char* bad : {"", "bit", "Gbit", "-1Mbit", "1mbit", "/s", "1Mbit/s"}) {
    EXPECT_EQ(CodeOf(ParseRate(bad).status()), KVT_ERR_INVALID_ARGUMENT) << bad;
  }
}

}  // namespace
}  // namespace kvt
