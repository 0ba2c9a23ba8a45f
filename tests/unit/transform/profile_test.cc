// Profiles that are damaged, hostile, of another model or missing, and frames of them.
#include <algorithm>

#include "codec/profile_frame.h"
#include "codec/profile_layout.h"
#include "codec/transform/plan.h"
#include "codec/transform/products.h"
#include "cpu/hash_copy.h"
#include "unit/codec/reseal.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

// A profile small enough to flip its every byte.
std::string TinyProfile(std::shared_ptr<const Model>* model) {
  KvShape shape;
  shape.layers = 1;
  shape.heads = 1;
  shape.k_dim = 8;
  shape.v_dim = 4;
  shape.rope_dims = 8;
  *model = MakeModel(shape);
  return MakeProfile(*model);
}

TEST(ProfileTest, AFlippedByteAnywhereIsDetected) {
  std::shared_ptr<const Model> model;
  const std::string profile = TinyProfile(&model);
  ASSERT_TRUE(Profile::Parse(AsBytes(profile)).ok());
  std::mt19937 random(5);
  for (size_t i = 0; i < profile.size(); ++i) {
    std::string damaged = profile;
    damaged[i] ^= static_cast<char>(1 << random() % 8);
    const Status status = Profile::Parse(AsBytes(damaged)).status();
    ASSERT_TRUE(CodeOf(status) == KVT_ERR_CORRUPT || CodeOf(status) == KVT_ERR_VERSION)
        << "byte " << i << ": " << status;
  }
  for (size_t length = 0; length < profile.size(); length += 7)
    ASSERT_EQ(CodeOf(Profile::Parse(AsBytes(profile.substr(0, length))).status()), KVT_ERR_CORRUPT);
  EXPECT_EQ(CodeOf(Profile::Parse(AsBytes(profile + "x")).status()), KVT_ERR_CORRUPT);
}

std::string Resealed(std::string bytes) {
  kernels::HashCopy hash(nullptr);
  hash.Add(bytes.data(), 56);
  hash.Add(bytes.data() + 64, bytes.size() - 64);
  StoreLe(bytes.data() + 56, hash.Digest());
  return bytes;
}

// Whatever a hostile profile with right checksums says, it is refused or gives finite rows.
TEST(ProfileTest, HostileBytes) {
  std::shared_ptr<const Model> model;
  const std::string profile = TinyProfile(&model);
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 20);
  FillCorrelated(*model, &memory, 9);
  std::mt19937 random(11);
  int accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string damaged = profile;
    for (uint32_t change = 0; change <= random() % 3; ++change) {
      const size_t at = 64 + random() % (damaged.size() - 64);
      damaged[at] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    const auto codec = CreateTransform(model, Resealed(damaged), 4 + random() % 29);
    if (!codec.ok()) {
      const kvt_status_t code = CodeOf(codec.status());
      ASSERT_TRUE(code == KVT_ERR_CORRUPT || code == KVT_ERR_MISMATCH || code == KVT_ERR_INVALID_ARGUMENT)
          << codec.status();
      continue;
    }
    ++accepted;
    const auto frame = Encode(**codec, memory.view(), MakeSpec(memory.view()));
    Memory back(model, Layout::kDense, KVT_ELEMENT_F16, 20);
    const auto decoded = (*codec)->Decode(Bytes(frame), MakeSpec(back.view()), back.view());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    back.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      ASSERT_TRUE(std::isfinite(back.Get(layer, stream, token, head, e)));
    });
  }
  EXPECT_GT(accepted, 100);
}

TEST(ProfileTest, BadNumbersAreNamed) {
  const auto parsed = *Profile::Parse(AsBytes(SharedProfile()));
  const auto refused = [&](const auto& change) {
    ProfileFacts facts = parsed->facts();
    change(&facts);
    const Status status = Profile::Parse(AsBytes(WriteProfile(facts))).status();
    EXPECT_EQ(CodeOf(status), KVT_ERR_CORRUPT) << status;
    return std::string(status.message());
  };
  EXPECT_NE(refused([](ProfileFacts* f) { f->groups[1].mean[3] = std::nanf(""); }).find("group 1: mean[3]"),
            std::string::npos);
  EXPECT_NE(refused([](ProfileFacts* f) { f->groups[0].deviation[2] = -1; }).find("deviation[2] is -1"),
            std::string::npos);
  EXPECT_NE(refused([](ProfileFacts* f) { f->groups[0].amplitude[1] = 0; }).find("amplitude[1] is 0"),
            std::string::npos);
  EXPECT_NE(refused([](ProfileFacts* f) {
              std::swap(f->books[3].levels[1], f->books[3].levels[5]);
            }).find("book of 3 bits"),
            std::string::npos);
  EXPECT_NE(refused([](ProfileFacts* f) { f->books[2].levels.push_back(9); }).find("has 5 values"),
            std::string::npos);
  EXPECT_NE(refused([](ProfileFacts* f) { f->books[8].distortion = 2; }).find("distortion is 2"),
            std::string::npos);
  EXPECT_NE(refused([](ProfileFacts* f) { f->groups[2].layer_begin = 3; }).find("group 2"),
            std::string::npos);
  EXPECT_NE(refused([](ProfileFacts* f) { f->ratio_min = 2; }).find("ratio_min is 2"), std::string::npos);
  EXPECT_NE(refused([](ProfileFacts* f) { f->layer_end = 5; }).find("group 4"), std::string::npos);
}

TEST(ProfileTest, ProductsAreThoseOfTheComponentsKept) {
  const auto parsed = *Profile::Parse(AsBytes(SharedProfile()));
  const Products fixed = FixedProducts(parsed->facts()), dense = DenseProducts(parsed->facts());
  EXPECT_EQ(fixed.ratio_min, 4u);
  ASSERT_EQ(fixed.mflop.size(), 29u);
  EXPECT_EQ(dense.ratio_min, 8u);
  ASSERT_EQ(dense.mflop.size(), 89u);
  for (const Products& products : {fixed, dense})
    EXPECT_TRUE(std::is_sorted(products.mflop.rbegin(), products.mflop.rend()));
  double flop = 0, metric = 0;
  const auto plan = Plan::Create(parsed, 16);
  for (const GroupPlan& group : plan->groups()) {
    flop += 2.0 * static_cast<double>(group.kept() * group.group->width());
    metric += 2.0 * static_cast<double>(group.group->width() * parsed->facts().dims[group.group->stream]);
  }
  EXPECT_DOUBLE_EQ(fixed.mflop[12], flop / 1e6);
  ProfileFacts with_metric = parsed->facts();
  for (ProfileGroup& group : with_metric.groups) group.metric.assign(1, 1.0f);
  EXPECT_NEAR(FixedProducts(with_metric).mflop[12], (flop + metric) / 1e6, 1e-9);
  with_metric.dense = nullptr;
  EXPECT_TRUE(DenseProducts(with_metric).mflop.empty());
  EXPECT_NE(DescribeProfile(*parsed).find(absl::StrCat("\"mflop\":{\"transform\":{\"4\":", fixed.mflop[0])),
            std::string::npos);
}

TEST(ProfileTest, OptionsOfTheCodec) {
  const auto model = MakeModel(KvShape());
  EXPECT_EQ(CodeOf(CreateTransform(model, SharedProfile(), 3).status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(CreateTransform(model, SharedProfile(), 33).status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(CreateTransform(model, "", 16).status()), KVT_ERR_INVALID_ARGUMENT);
  KvShape other;
  other.id = "others";
  const Status status = CreateTransform(MakeModel(other), SharedProfile(), 16).status();
  EXPECT_EQ(CodeOf(status), KVT_ERR_MISMATCH);
  EXPECT_NE(status.message().find("model fingerprint"), std::string::npos) << status;
  CalibrationOptions options;
  options.ratio_min = 8;
  const std::string coarse = MakeProfile(model, options);
  EXPECT_LT(coarse.size(), SharedProfile().size());
  EXPECT_EQ(CodeOf(CreateTransform(model, coarse, 7).status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_TRUE(CreateTransform(model, coarse, 8).ok());
}

TEST(ProfileTest, ADecoderWithoutTheProfileSaysWhich) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 30);
  FillCorrelated(*model, &memory, 9);
  const auto codec = MakeTransform(model, SharedProfile(), 16);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()));
  const std::string fingerprint = Hex(Bytes((*Profile::Parse(AsBytes(SharedProfile())))->fingerprint()));
  CalibrationOptions options;
  options.group_layers = 3;
  for (const auto& other : {MakeCodec(model, "raw"), MakeTransform(model, MakeProfile(model, options), 16)}) {
    const auto decoded = other->Decode(Bytes(frame), MakeSpec(memory.view()), memory.view());
    EXPECT_EQ(CodeOf(decoded.status()), KVT_ERR_PROFILE_MISSING);
    EXPECT_NE(decoded.status().message().find(fingerprint), std::string::npos) << decoded.status();
  }
}

TEST(ProfileFrameTest, WrapsAndUnwraps) {
  std::shared_ptr<const Model> model;
  const std::string profile = TinyProfile(&model);
  NamespaceDigest digest;
  digest.fill(3);
  const auto frame = WrapProfile(AsBytes(profile), digest);
  ASSERT_TRUE(frame.ok()) << frame.status();
  const auto summary = VerifyFrame(AsBytes(*frame), nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->key, *ProfileKey(*FingerprintOf(AsBytes(profile))));
  EXPECT_EQ(summary->model, model->fingerprint());
  EXPECT_EQ(summary->namespace_digest, digest);
  const auto back = UnwrapProfile(AsBytes(*frame));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(AsText(*back), profile);
  for (size_t i = 0; i < frame->size(); i += 3) {
    std::string damaged = *frame;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    ASSERT_FALSE(UnwrapProfile(AsBytes(damaged)).ok()) << "byte " << i;
  }
}

TEST(ProfileFrameTest, RefusesOtherFramesAndKeys) {
  std::shared_ptr<const Model> model;
  const std::string profile = TinyProfile(&model);
  const auto wrapped = *WrapProfile(AsBytes(profile), {});
  const std::vector<uint8_t> frame(wrapped.begin(), wrapped.end());
  FrameHeader header = *ParseFrame(Bytes(frame));
  header.key.bytes[0] ^= 1;
  EXPECT_EQ(CodeOf(UnwrapProfile(Bytes(WithHeader(frame, header, header.payload_offset))).status()),
            KVT_ERR_MISMATCH);
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 5);
  const auto other = Encode(*MakeCodec(model, "raw"), memory.view(), MakeSpec(memory.view()));
  EXPECT_EQ(CodeOf(UnwrapProfile(Bytes(other)).status()), KVT_ERR_MISMATCH);
  EXPECT_FALSE(WrapProfile(AsBytes(profile.substr(0, 100)), {}).ok());
}

TEST(TransformFrameTest, AFlippedByteAnywhereIsDetected) {
  std::shared_ptr<const Model> model;
  const std::string profile = TinyProfile(&model);
  const auto codec = MakeTransform(model, profile, 4);
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 9);
  FillCorrelated(*model, &memory, 9);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 1, 1));
  std::mt19937 random(5);
  for (size_t i = 0; i < frame.size(); ++i) {
    auto damaged = frame;
    damaged[i] ^= static_cast<uint8_t>(1 << random() % 8);
    const auto decoded = codec->Decode(Bytes(damaged), MakeSpec(memory.view()), memory.view());
    ASSERT_FALSE(decoded.ok()) << "byte " << i;
  }
}

// Segments and headers rewritten with right checksums: refused, or decoded to finite rows.
TEST(TransformFrameTest, HostileBytes) {
  std::shared_ptr<const Model> model;
  const std::string profile = TinyProfile(&model);
  const auto codec = MakeTransform(model, profile, 4);
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 40);
  FillCorrelated(*model, &memory, 9);
  memory.Set(0, 1, 20, 0, 1, 3000);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 1, 1));
  const auto header = *ParseFrame(Bytes(frame));
  std::mt19937 random(17);
  int refused = 0, decoded_frames = 0;
  for (int round = 0; round < 4000; ++round) {
    auto damaged = frame;
    FrameHeader changed = header;
    Segment& segment = changed.segments[random() % changed.segments.size()];
    uint8_t* stored = damaged.data() + header.payload_offset + segment.offset;
    switch (random() % 4) {
      case 0:
        changed.ratio = 1 + random() % 40;
        break;
      case 1:
        segment.stored_length -= random() % 64;
        break;
      default:
        // Gains and escapes are at the ends.
        stored[random() % 2 == 0 ? random() % segment.stored_length
                                 : segment.stored_length - 1 - random() % 16] =
            static_cast<uint8_t>(random());
    }
    for (Segment& s : changed.segments)
      s.checksum = kernels::Hash(damaged.data() + header.payload_offset + s.offset, s.stored_length);
    damaged = WithHeader(damaged, changed, header.payload_offset);
    Memory back(model, Layout::kDense, KVT_ELEMENT_F16, 40);
    const auto decoded = codec->Decode(Bytes(damaged), MakeSpec(back.view()), back.view());
    if (!decoded.ok()) {
      ASSERT_EQ(CodeOf(decoded.status()), KVT_ERR_CORRUPT) << decoded.status();
      ++refused;
      continue;
    }
    ++decoded_frames;
    back.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      if (token >= 1 && token < 39) {
        ASSERT_TRUE(std::isfinite(back.Get(layer, stream, token, head, e)));
      }
    });
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(decoded_frames, 500);
}

}  // namespace
}  // namespace kvt::test
