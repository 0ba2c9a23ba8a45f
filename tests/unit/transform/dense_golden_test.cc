// Stored bytes of codec dense with both quantisers, by checksum: a change here is a change of the format
// (docs/dense.md). The profile is made by hand, so that only exact sums enter.
#include "codec/transform/steps.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

constexpr uint32_t kDim = 8;
constexpr uint64_t kTokens = 600;

// Symbols of a class and quantiser: the larger the class, the more of them.
SymbolTable TableOf(uint32_t table) {
  SymbolCounts counts{};
  const uint64_t wide = 2 + table / 2;
  for (uint64_t symbol = 0; symbol < 64; ++symbol)
    counts[symbol] = (uint64_t{1} << 20) / (1 + symbol * symbol * 16 / (wide * wide) + table % 2);
  return SymbolTable::Of(counts, kDenseBits, /*escapes=*/true);
}

// The identity as basis, and deviations that fall by halves.
std::string Profile(const std::shared_ptr<const Model>& model) {
  const auto parsed = *kvt::Profile::Parse(AsBytes(MakeProfile(model)));
  ProfileFacts facts = parsed->facts();
  std::vector<uint16_t> identity(kDim * kDim);
  for (size_t i = 0; i < kDim; ++i) identity[i * kDim + i] = 0x3c00;
  for (ProfileGroup& group : facts.groups) {
    group.mean.assign(kDim, 0.0f);
    group.amplitude.assign(1, 1.0f);
    group.deviation.clear();
    for (int j = 0; j < static_cast<int>(kDim); ++j) group.deviation.push_back(std::ldexp(4.0f, -j));
    group.spread = group.deviation;
    group.leading = 2;
    group.basis = reinterpret_cast<const uint8_t*>(identity.data());
    group.metric.clear();
  }
  auto dense = std::make_shared<DenseFacts>();
  dense->steps = {-3 * kOctave, 3 * kOctave};
  dense->ratios = {4, 128};
  for (uint32_t i = 0; i < kDenseTables; ++i) {
    dense->tables.push_back(TableOf(i));
    dense->centres.insert(dense->centres.end(), {-0.125f, -0.0625f, 0.0f});
  }
  facts.dense = dense;
  return WriteProfile(facts);
}

TEST(DenseGoldenTest, StoredBytesAreThoseOfTheFormat) {
  const struct {
    uint32_t quantiser;
    uint64_t lengths[2];
    uint64_t checksums[2];
  } all[] = {{KVT_QUANTISER_TRELLIS, {1235, 1223}, {0x9f8e17fa4cb3af36, 0xa2299f1f5f191eb9}},
             {KVT_QUANTISER_SCALAR, {1235, 1223}, {0xfabc6f45b53b98f1, 0xae80ebedbfb15aca}}};
  KvShape shape;
  shape.layers = shape.heads = 1;
  shape.k_dim = shape.v_dim = kDim;
  shape.rope_style = KVT_ROPE_NONE;
  const auto model = MakeModel(shape);
  Memory source(model, Layout::kDense, KVT_ELEMENT_F16, kTokens);
  source.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    const auto value = static_cast<int>((stream * 17 + token * token * 7 + e * 29) % 61) - 30;
    source.Set(layer, stream, token, head, e,
               std::ldexp(static_cast<float>(value), -2 - static_cast<int>(e)));
  });
  const std::string profile = Profile(model);
  for (const auto& golden : all) {
    const auto codec = CreateTransform(model, profile, 24, "dense", KVT_EXEMPT_INT8, golden.quantiser);
    ASSERT_TRUE(codec.ok()) << codec.status();
    const auto frame = Encode(**codec, source.view(), MakeSpec(source.view(), 1, 2));
    const auto header = ParseFrame(Bytes(frame));
    ASSERT_TRUE(header.ok());
    ASSERT_EQ(header->segments.size(), 2u);
    for (int stream = 0; stream < 2; ++stream) {
      EXPECT_EQ(header->segments[stream].stored_length, golden.lengths[stream])
          << golden.quantiser << " " << stream;
      EXPECT_EQ(header->segments[stream].checksum, golden.checksums[stream])
          << golden.quantiser << " " << stream << std::hex << " 0x" << header->segments[stream].checksum;
    }
  }
}

}  // namespace
}  // namespace kvt::test
