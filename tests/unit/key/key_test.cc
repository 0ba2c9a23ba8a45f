#include "key/key.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>
#include <set>

#include "unit/model/model_options.h"

namespace kvt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int32_t> Tokens(size_t count) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// What goes into a key, owned.
struct Inputs {
  kvt_model_options_t model = KvOptions();
  std::string ns, salt;
  uint32_t block_tokens = 16;
  std::vector<int32_t> tokens = Tokens(32);
  std::vector<std::pair<uint64_t, std::string>> extras;

  StatusOr<std::vector<Key>> Keys() const {
    std::vector<kvt_key_extra_t> borrowed;
    for (const auto& [token, data] : extras) borrowed.push_back({token, AsBytes(data).data(), data.size()});
    kvt_key_options_t options = {};
    options.struct_size = sizeof options;
    options.block_tokens = block_tokens;
    options.ns = AsBytes(ns).data(), options.ns_len = ns.size();
    options.salt = AsBytes(salt).data(), options.salt_len = salt.size();
    options.extras = borrowed.data(), options.extra_count = borrowed.size();
    return ComputeKeys(MakeModel(model)->fingerprint(), options, tokens);
  }
  std::string Last() const { return Keys()->back().ToString(); }
};

TEST(KeyTest, VectorsOfTheDocumentation) {
  Inputs in;
  auto keys = in.Keys();
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 2u);
  EXPECT_EQ((*keys)[0].ToString(),
            "56c921061e63c97331e3a59715d1099a665585aa3880dafac5107aae839bb03b10000000");
  EXPECT_EQ((*keys)[1].ToString(),
            "0b132405f5122541ba08cd14e16acce55ef14bfd06b0e952fb5c90d00d12088610000000");
  in.block_tokens = 32;
  EXPECT_EQ(in.Last(), "0b132405f5122541ba08cd14e16acce55ef14bfd06b0e952fb5c90d00d12088620000000");
  in.block_tokens = 16;
  in.ns = "tenant-a", in.salt = "pepper";
  keys = in.Keys();
  EXPECT_EQ((*keys)[0].ToString(),
            "1d31bfde7267df240436194b55b0735f636a8218c8c2f38cf4dab62a01094bd010000000");
  EXPECT_EQ((*keys)[1].ToString(),
            "c26272a154c561e5a041eb28efb78c07009e47ff142c443de5332049b27d4c6d10000000");
  in = Inputs();
  in.extras = {{3, "\1\2\3"}, {17, "image"}};
  keys = in.Keys();
  EXPECT_EQ((*keys)[0].ToString(),
            "5d3d84a4c100854c48814e6d931274f3d1233706e424cb35b7a021f63a1b9f8a10000000");
  EXPECT_EQ((*keys)[1].ToString(),
            "bfca45666621d39303a958484e5f1932060a3e9344828b9f321681b2ce45b0e910000000");
}

TEST(KeyTest, NamespaceDigestsOfTheDocumentation) {
  EXPECT_EQ(Hex(Bytes(*DigestNamespace(nullptr, 0, nullptr, 0))), "97f3e77796337b15dde4bf6fb3a6befa");
  const Bytes ns = AsBytes("tenant-a"), salt = AsBytes("pepper");
  EXPECT_EQ(Hex(Bytes(*DigestNamespace(ns.data(), 8, salt.data(), 6))), "0f4d37556fc49ac97e98b140c1a41532");
  const Bytes text = AsBytes("abc");
  EXPECT_NE(*DigestNamespace(text.data(), 2, text.data() + 2, 1),
            *DigestNamespace(text.data(), 1, text.data() + 1, 2));
  EXPECT_NE(*DigestNamespace(text.data(), 3, nullptr, 0), *DigestNamespace(nullptr, 0, text.data(), 3));
  EXPECT_EQ(CodeOf(DigestNamespace(nullptr, 1, nullptr, 0).status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(DigestNamespace(text.data(), 1025, nullptr, 0).status()), KVT_ERR_INVALID_ARGUMENT);
}

TEST(KeyTest, ChainIsTheSameWhateverTheBlockSize) {
  Inputs in;
  in.tokens = Tokens(16 * 12 + 5);
  in.extras = {{0, "a"}, {100, "b"}, {100, "c"}, {191, "d"}};
  const auto fine = *in.Keys();
  ASSERT_EQ(fine.size(), 12u);
  for (const uint32_t block : {32u, 48u, 64u, 96u, 192u}) {
    in.block_tokens = block;
    const auto coarse = *in.Keys();
    ASSERT_EQ(coarse.size(), 192 / block);
    for (size_t i = 0; i < coarse.size(); ++i) {
      const Key& end = fine[(i + 1) * block / 16 - 1];
      EXPECT_TRUE(std::equal(end.bytes.begin(), end.bytes.begin() + 32, coarse[i].bytes.begin()));
      EXPECT_EQ(LoadLe<uint32_t>(coarse[i].bytes.data() + 32), block);
      EXPECT_NE(coarse[i], end);
    }
  }
}

TEST(KeyTest, OnlyWholeBlocksHaveKeysAndTheRestChangesNothing) {
  Inputs in;
  in.tokens.clear();
  EXPECT_TRUE(in.Keys()->empty());
  in.tokens = Tokens(15);
  EXPECT_TRUE(in.Keys()->empty());
  in.tokens = Tokens(16);
  const auto one = *in.Keys();
  in.tokens = Tokens(31);
  in.tokens[20] = -1;
  in.extras = {{16, "tail"}, {30, ""}};
  EXPECT_EQ(*in.Keys(), one);
}

// All of these differ in what they mean, some only in where a boundary lies: no two may share a key.
TEST(KeyTest, DifferentMeaningsNeverShareAKey) {
  std::vector<std::pair<std::string, Inputs>> all;
  const auto add = [&](const std::string& name, auto edit) {
    Inputs in;
    edit(&in);
    all.emplace_back(name, in);
  };
  add("plain", [](Inputs*) {});
  for (const auto& [ns, salt] :
       std::vector<std::pair<std::string, std::string>>{{"ab", "c"},
                                                        {"a", "bc"},
                                                        {"abc", ""},
                                                        {"", "abc"},
                                                        {"a", ""},
                                                        {"", "a"},
                                                        {std::string(1, '\0'), ""},
                                                        {"", std::string(1, '\0')},
                                                        {std::string("a\0", 2), ""},
                                                        {std::string("\1\0\0\0a", 5), "b"},
                                                        {std::string(1024, 'a'), ""},
                                                        {std::string(1023, 'a'), "a"}}) {
    add("ns/salt", [&](Inputs* in) { in->ns = ns, in->salt = salt; });
  }
  static const uint8_t other_id[32] = {1};
  add("model_id", [](Inputs* in) { in->model.model_id = other_id; });
  add("adapter", [](Inputs* in) { in->model.adapter = kModelId, in->model.adapter_len = 1; });
  add("adapter 2", [](Inputs* in) { in->model.adapter = kModelId, in->model.adapter_len = 2; });
  add("element", [](Inputs* in) { in->model.element = KVT_ELEMENT_BF16; });
  add("rope", [](Inputs* in) { in->model.rope_base = 10000; });
  for (size_t i : {0, 15, 16, 31}) add("token", [i](Inputs* in) { in->tokens[i] ^= 1 << 30; });
  add("swapped", [](Inputs* in) { std::swap(in->tokens[3], in->tokens[4]); });
  add("block", [](Inputs* in) { in->block_tokens = 32; });
  using Extras = std::vector<std::pair<uint64_t, std::string>>;
  for (const Extras& extras : std::vector<Extras>{{{0, ""}},
                                                  {{1, ""}},
                                                  {{16, ""}},
                                                  {{0, "ab"}},
                                                  {{0, "a"}, {0, "b"}},
                                                  {{0, "a"}, {1, "b"}},
                                                  {{0, "b"}, {0, "a"}},
                                                  {{0, ""}, {0, "ab"}},
                                                  {{0, "ab"}, {0, ""}},
                                                  {{16, "ab"}},
                                                  {{31, "ab"}}}) {
    add("extras", [&](Inputs* in) { in->extras = extras; });
  }
  // An extra whose bytes spell what would follow: another extra's header.
  add("spelled", [](Inputs* in) {
    in->extras = {{0, std::string("a") + std::string("\0\0\0\0\1\0\0\0\0\0\0\0", 12) + "b"}};
  });
  std::set<std::string> seen;
  for (const auto& [name, in] : all) {
    const auto keys = in.Keys();
    ASSERT_TRUE(keys.ok()) << keys.status();
    EXPECT_TRUE(seen.insert(in.Last()).second) << name;
  }
}

TEST(KeyTest, RandomInputsShareKeysExactlyWhenEqual) {
  std::mt19937 random(11);
  const auto text = [&](int most) {
    std::string out(random() % (most + 1), 'a');
    for (char& c : out) c = static_cast<char>('a' + random() % 2);
    return out;
  };
  std::map<std::string, std::string> meaning_of;
  for (int round = 0; round < 4000; ++round) {
    Inputs in;
    in.ns = text(3), in.salt = text(3);
    in.tokens[random() % 32] = static_cast<int32_t>(random() % 3);
    for (uint64_t t = 0; t < 2; ++t) {
      if (random() % 2 == 0) in.extras.emplace_back(t * 17, text(2));
    }
    std::string meaning = absl::StrCat(in.ns, "|", in.salt, "|");
    for (int32_t token : in.tokens) absl::StrAppend(&meaning, token, ",");
    for (const auto& [token, data] : in.extras) absl::StrAppend(&meaning, token, ":", data, ";");
    const auto [at, added] = meaning_of.emplace(in.Last(), meaning);
    ASSERT_EQ(at->second, meaning);
  }
  std::set<std::string> meanings;
  for (const auto& [key, meaning] : meaning_of) EXPECT_TRUE(meanings.insert(meaning).second);
}

TEST(KeyTest, BadInputIsRefusedByNameAndValue) {
  const auto message = [](auto edit) {
    Inputs in;
    edit(&in);
    const auto keys = in.Keys();
    EXPECT_EQ(CodeOf(keys.status()), KVT_ERR_INVALID_ARGUMENT);
    return std::string(keys.status().message());
  };
  for (const uint32_t block : {0u, 1u, 8u, 17u, 65552u, UINT32_MAX}) {
    EXPECT_THAT(message([block](Inputs* in) { in->block_tokens = block; }),
                HasSubstr(absl::StrCat("block_tokens is ", block)));
  }
  EXPECT_THAT(message([](Inputs* in) { in->ns = std::string(1025, 'x'); }), HasSubstr("ns_len is 1025"));
  EXPECT_THAT(message([](Inputs* in) { in->salt = std::string(1025, 'x'); }), HasSubstr("salt_len is 1025"));
  EXPECT_THAT(message([](Inputs* in) { in->extras = {{32, "x"}}; }), HasSubstr("extras[0].token is 32"));
  EXPECT_THAT(message([](Inputs* in) {
                in->extras = {{5, "x"}, {4, "x"}};
              }),
              HasSubstr("extras[1].token is 4"));
  EXPECT_THAT(message([](Inputs* in) {
                in->extras = {{5, std::string(4097, 'x')}};
              }),
              HasSubstr("extras[0].len is 4097"));
}

TEST(BlockHashTest, VectorsOfDynamo) {
  const std::vector<int32_t> tokens = Tokens(40);
  EXPECT_THAT(BlockHashes(tokens, 16, {}, {}), ElementsAre(15310707395893867146u, 13769157705258532664u));
  EXPECT_THAT(BlockHashes(tokens, 16, AsBytes("my-lora"), {}),
              ElementsAre(7774427462321301335u, 13956809587245606139u));
  EXPECT_THAT(BlockHashes(tokens, 16, {}, AsBytes("tenant-a")),
              ElementsAre(2130915519417463704u, 13676355973429745432u));
  EXPECT_TRUE(BlockHashes({tokens.data(), 15}, 16, {}, {}).empty());
}

class KeyAbiTest : public testing::Test {
 protected:
  KeyAbiTest() {
    kvt_model_options_t options = KvOptions();
    EXPECT_EQ(kvt_model_create(&options, &model_), KVT_OK);
    kvt_key_options_init(&options_, sizeof options_);
  }
  ~KeyAbiTest() override { kvt_model_destroy(model_); }
  const std::vector<int32_t> tokens_ = Tokens(40);
  kvt_model_t model_ = 0;
  kvt_key_options_t options_;
};

TEST_F(KeyAbiTest, ProbesAndFills) {
  size_t needed = 0;
  ASSERT_EQ(kvt_keys_compute(model_, &options_, tokens_.data(), 40, nullptr, 0, &needed), KVT_OK);
  EXPECT_EQ(needed, 2u * KVT_KEY_BYTES);
  std::vector<uint8_t> keys(needed);
  EXPECT_EQ(kvt_keys_compute(model_, &options_, tokens_.data(), 40, keys.data(), needed - 1, &needed),
            KVT_ERR_BUFFER_TOO_SMALL);
  ASSERT_EQ(kvt_keys_compute(model_, nullptr, tokens_.data(), 40, keys.data(), keys.size(), nullptr), KVT_OK);
  EXPECT_EQ(Hex(Bytes(keys).subspan(36, 8)), "0b132405f5122541");

  size_t count = 0;
  ASSERT_EQ(kvt_block_hashes(tokens_.data(), 40, 16, nullptr, 0, nullptr, 0, nullptr, 0, &count), KVT_OK);
  ASSERT_EQ(count, 2u);
  uint64_t hashes[2];
  EXPECT_EQ(kvt_block_hashes(tokens_.data(), 40, 16, nullptr, 0, nullptr, 0, hashes, 1, &count),
            KVT_ERR_BUFFER_TOO_SMALL);
  ASSERT_EQ(kvt_block_hashes(tokens_.data(), 40, 16, nullptr, 0, nullptr, 0, hashes, 2, &count), KVT_OK);
  EXPECT_EQ(hashes[1], 13769157705258532664u);
}

TEST_F(KeyAbiTest, BadPointersAndHandles) {
  size_t needed = 0;
  EXPECT_EQ(kvt_keys_compute(model_, &options_, nullptr, 16, nullptr, 0, &needed), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_keys_compute(model_, &options_, tokens_.data(), 16, nullptr, 36, &needed),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_keys_compute(model_, &options_, tokens_.data(), 16, nullptr, 0, nullptr),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_keys_compute(0, &options_, tokens_.data(), 16, nullptr, 0, &needed), KVT_ERR_STALE_HANDLE);
  options_.ns_len = 3;
  EXPECT_EQ(kvt_keys_compute(model_, &options_, tokens_.data(), 16, nullptr, 0, &needed),
            KVT_ERR_INVALID_ARGUMENT);
  options_.ns_len = 0, options_.extra_count = 1;
  EXPECT_EQ(kvt_keys_compute(model_, &options_, tokens_.data(), 16, nullptr, 0, &needed),
            KVT_ERR_INVALID_ARGUMENT);
  const kvt_key_extra_t missing = {0, nullptr, 1};
  options_.extras = &missing;
  EXPECT_EQ(kvt_keys_compute(model_, &options_, tokens_.data(), 16, nullptr, 0, &needed),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(needed, 0u);
  EXPECT_EQ(kvt_block_hashes(tokens_.data(), 16, 0, nullptr, 0, nullptr, 0, nullptr, 0, &needed),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_block_hashes(nullptr, 16, 16, nullptr, 0, nullptr, 0, nullptr, 0, &needed),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_block_hashes(tokens_.data(), 16, 16, nullptr, 2, nullptr, 0, nullptr, 0, &needed),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_block_hashes(tokens_.data(), 16, 16, nullptr, 0, nullptr, 2, nullptr, 0, &needed),
            KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_namespace_digest(nullptr, 0, nullptr, 0, nullptr), KVT_ERR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kvt
