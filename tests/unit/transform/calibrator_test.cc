#include "cpu/hash_copy.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

void AddDocument(const std::shared_ptr<const Model>& model, Calibrator* calibrator, uint32_t document,
                 uint64_t tokens = 300, uint64_t first_position = 0) {
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F32, tokens, first_position);
  FillCorrelated(*model, &memory, document);
  const Status added = calibrator->Add(memory.view(), 0, tokens);
  ASSERT_TRUE(added.ok()) << added;
}

TEST(CalibratorTest, ResumedEqualsUnbroken) {
  const auto model = MakeModel(KvShape());
  const auto unbroken = *Calibrator::Create(model, {});
  auto resumed = *Calibrator::Create(model, {});
  for (uint32_t document = 0; document < 6; ++document) {
    AddDocument(model, unbroken.get(), document);
    AddDocument(model, resumed.get(), document);
    auto restored = Calibrator::Restore(model, AsBytes(resumed->Save()));
    ASSERT_TRUE(restored.ok()) << restored.status();
    resumed = *restored;
  }
  EXPECT_EQ(resumed->Info().documents, 6u);
  EXPECT_EQ(resumed->Info().tokens, 6u * 296);
  EXPECT_EQ(*unbroken->Finish(), *resumed->Finish());
  EXPECT_EQ(*unbroken->Finish(), *unbroken->Finish());
}

TEST(CalibratorTest, PagesAndStridesGiveTheSameProfile) {
  const auto model = MakeModel(KvShape());
  std::string profiles[3];
  for (const Layout layout : {Layout::kDense, Layout::kPaged, Layout::kStrided}) {
    const auto calibrator = *Calibrator::Create(model, {});
    Memory memory(model, layout, KVT_ELEMENT_F16, 200);
    FillCorrelated(*model, &memory, 1);
    ASSERT_TRUE(calibrator->Add(memory.view(), 0, 200).ok());
    profiles[static_cast<size_t>(layout)] = *calibrator->Finish();
  }
  EXPECT_EQ(profiles[0], profiles[1]);
  EXPECT_EQ(profiles[0], profiles[2]);
}

TEST(CalibratorTest, TheBasisIsOrthonormalAndInOrder) {
  const auto model = MakeModel(KvShape());
  const auto profile = Profile::Parse(AsBytes(SharedProfile()));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_TRUE((*profile)->CheckModel(*model).ok());
  ASSERT_EQ((*profile)->facts().groups.size(), 6u);
  EXPECT_EQ((*profile)->facts().tokens, 3u * 296);
  for (const ProfileGroup& group : (*profile)->facts().groups) {
    EXPECT_EQ(group.layer_end - group.layer_begin, 2u);
    for (size_t a = 0; a < group.components(); a += 17) {
      for (size_t b = 0; b < group.components(); b += 13) {
        double product = 0;
        for (size_t c = 0; c < group.width(); ++c) {
          const auto* basis = reinterpret_cast<const uint16_t*>(group.basis);
          product += double{kernels::F16ToF32(basis[a * group.width() + c])} *
                     double{kernels::F16ToF32(basis[b * group.width() + c])};
        }
        ASSERT_NEAR(product, a == b ? 1 : 0, 2e-3);
      }
    }
  }
}

TEST(CalibratorTest, FirstPositionsDoNotEnter) {
  const auto model = MakeModel(KvShape());
  const auto calibrator = *Calibrator::Create(model, {});
  AddDocument(model, calibrator.get(), 0, 3);
  EXPECT_EQ(calibrator->Info().tokens, 0u);
  AddDocument(model, calibrator.get(), 0, 100, 2);
  EXPECT_EQ(calibrator->Info().tokens, 98u);
  AddDocument(model, calibrator.get(), 0, 100, 100);
  EXPECT_EQ(calibrator->Info().tokens, 198u);
}

TEST(CalibratorTest, RefusesWhatItCannotUse) {
  const auto model = MakeModel(KvShape());
  CalibrationOptions options;
  options.group_layers = 7;
  EXPECT_EQ(CodeOf(Calibrator::Create(model, options).status()), KVT_ERR_INVALID_ARGUMENT);
  options = {};
  options.ratio_min = 33;
  EXPECT_EQ(CodeOf(Calibrator::Create(model, options).status()), KVT_ERR_INVALID_ARGUMENT);
  options = {};
  options.head_end = 3;
  EXPECT_EQ(CodeOf(Calibrator::Create(model, options).status()), KVT_ERR_INVALID_ARGUMENT);
  const auto calibrator = *Calibrator::Create(model, {});
  EXPECT_EQ(CodeOf(calibrator->Finish().status()), KVT_ERR_OUT_OF_RANGE);
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 10);
  FillCorrelated(*model, &memory, 1);
  EXPECT_EQ(CodeOf(calibrator->Add(memory.view(), 5, 6)), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(CodeOf(calibrator->Add(memory.view(), 5, 0)), KVT_ERR_OUT_OF_RANGE);
  memory.description()->head_end = 1;
  EXPECT_EQ(CodeOf(calibrator->Add(memory.view(), 0, 10)), KVT_ERR_MISMATCH);
}

TEST(CalibratorTest, ConstantAndNonfiniteRowsGiveAProfile) {
  const auto model = MakeModel(KvShape());
  const auto calibrator = *Calibrator::Create(model, {});
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F32, 100);
  memory.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    memory.Set(layer, stream, token, head, e, stream == 1 ? 2.5f : e == 3 ? std::nanf("") : 0.0f);
  });
  ASSERT_TRUE(calibrator->Add(memory.view(), 0, 100).ok());
  EXPECT_EQ(calibrator->Info().nonfinite, 96u * 6 * 2);
  const auto profile = calibrator->Finish();
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto codec = MakeTransform(model, *profile, 16);
  ASSERT_NE(codec, nullptr);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()));
  Memory back(model, Layout::kDense, KVT_ELEMENT_F32, 100);
  ASSERT_TRUE(codec->Decode(Bytes(frame), MakeSpec(back.view()), back.view()).ok());
  EXPECT_NEAR(back.Get(2, 1, 50, 0, 5), 2.5, 1e-3);
  EXPECT_EQ(back.Get(2, 0, 50, 0, 3), 0);
}

TEST(CalibratorTest, DamagedStateIsRefused) {
  const auto model = MakeModel(KvShape());
  const auto calibrator = *Calibrator::Create(model, {});
  AddDocument(model, calibrator.get(), 0, 80);
  const std::string saved = calibrator->Save();
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = saved;
    damaged[i < 40 ? static_cast<size_t>(i) : random() % saved.size()] ^=
        static_cast<char>(1 << random() % 8);
    const Status status = Calibrator::Restore(model, AsBytes(damaged)).status();
    EXPECT_TRUE(CodeOf(status) == KVT_ERR_CORRUPT || CodeOf(status) == KVT_ERR_VERSION) << status;
  }
  EXPECT_EQ(CodeOf(Calibrator::Restore(model, AsBytes(saved.substr(0, 50))).status()), KVT_ERR_CORRUPT);
  KvShape other;
  other.id = "others";
  EXPECT_EQ(CodeOf(Calibrator::Restore(MakeModel(other), AsBytes(saved)).status()), KVT_ERR_MISMATCH);
}

// As `saved`, with a value at a place and the checksum made right.
template <typename T>
std::string WithValue(std::string saved, size_t at, T value) {
  StoreLe(saved.data() + at, value);
  const size_t end = saved.size() - sizeof(uint64_t);
  StoreLe(saved.data() + end, kernels::Hash(saved.data(), end));
  return saved;
}

TEST(CalibratorTest, StateWithValuesThatNoRowsGiveIsRefused) {
  constexpr size_t kTokensAt = 52, kSeenAt = 72, kHalvesAt = 88, kRows = 1024;
  KvShape shape;
  shape.layers = shape.heads = 1;
  const auto model = MakeModel(shape);
  const auto calibrator = *Calibrator::Create(model, {});
  AddDocument(model, calibrator.get(), 0, 1100);
  const std::string saved = calibrator->Save();
  const size_t shift_at = kHalvesAt + kRows * (sizeof(uint16_t) * (shape.k_dim + shape.v_dim) + 1);
  const size_t sum_at = shift_at + shape.k_dim * sizeof(float);
  const size_t outer_at = sum_at + shape.k_dim * sizeof(double);
  ASSERT_TRUE(Calibrator::Restore(model, AsBytes(WithValue(saved, shift_at, 1.0f))).ok());
  // One more token would be the zeroth.
  const uint64_t many = UINT64_MAX;
  const std::string hostile[] = {WithValue(WithValue(saved, kTokensAt, many), kSeenAt, many),
                                 WithValue(saved, kHalvesAt, uint16_t{0x7c00}),
                                 WithValue(saved, kHalvesAt + 2, uint16_t{0xfe01}),
                                 WithValue(saved, shift_at - 1, int8_t{3}),
                                 WithValue(saved, shift_at, 1e10f),
                                 WithValue(saved, sum_at, -1e300),
                                 WithValue(saved, outer_at, 1e38f),
                                 WithValue(saved, outer_at, -1.0f)};
  for (const std::string& state : hostile)
    EXPECT_EQ(CodeOf(Calibrator::Restore(model, AsBytes(state)).status()), KVT_ERR_CORRUPT);
}

TEST(CalibratorTest, RowsFarFromTheFirstGiveAProfile) {
  KvShape shape;
  shape.layers = shape.heads = 1;
  shape.rope_style = KVT_ROPE_NONE;
  const auto model = MakeModel(shape);
  const auto calibrator = *Calibrator::Create(model, {});
  std::mt19937 random(1);
  for (const float sign : {-1.0f, 1.0f}) {
    Memory memory(model, Layout::kDense, KVT_ELEMENT_F32, 300);
    memory.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      memory.Set(layer, stream, token, head, e, sign * (65504.0f - static_cast<float>(random() % 5000)));
    });
    ASSERT_TRUE(calibrator->Add(memory.view(), 0, 300).ok());
  }
  ASSERT_TRUE(Calibrator::Restore(model, AsBytes(calibrator->Save())).ok());
  const auto profile = calibrator->Finish();
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto parsed = Profile::Parse(AsBytes(*profile));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
}

}  // namespace
}  // namespace kvt::test
