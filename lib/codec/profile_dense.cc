#include "codec/profile_dense.h"

#include <cmath>

#include "codec/transform/steps.h"
#include "common/trellis.h"

namespace kvt {
namespace {

constexpr size_t kCentres = size_t{kDenseTables} * (kernels::kTrellisCentres - 1);
constexpr float kCentreMost = 2;
constexpr float kRatioMost = 65536;

Status Corrupt(absl::string_view text) {
  return Error(KVT_ERR_CORRUPT, absl::StrCat("profile: dense: ", text));
}

template <typename T>
std::vector<T> Copy(const flatbuffers::Vector<T>* field) {
  return field == nullptr ? std::vector<T>() : std::vector<T>(field->begin(), field->end());
}

}  // namespace

StatusOr<std::shared_ptr<const DenseFacts>> ReadDense(const schema::ProfileDense& read) {
  auto facts = std::make_shared<DenseFacts>();
  facts->steps = Copy(read.steps());
  facts->ratios = Copy(read.ratios());
  facts->centres = Copy(read.centres());
  if (facts->steps.size() < 2 || facts->steps.size() != facts->ratios.size()) {
    return Corrupt(absl::StrCat(facts->steps.size(), " steps and ", facts->ratios.size(),
                                " ratios, expected the same number, at least 2"));
  }
  for (size_t i = 0; i < facts->steps.size(); ++i) {
    const bool above =
        i == 0 || (facts->steps[i] > facts->steps[i - 1] && facts->ratios[i] > facts->ratios[i - 1]);
    if (!above || std::abs(facts->steps[i]) > kStepMost ||
        !(facts->ratios[i] > 0 && facts->ratios[i] < kRatioMost)) {
      return Corrupt(absl::StrCat("step ", facts->steps[i], " with ratio ", facts->ratios[i],
                                  " is out of range or not above the one before"));
    }
  }
  if (facts->centres.size() != kCentres)
    return Corrupt(absl::StrCat("centres are ", facts->centres.size(), ", expected ", kCentres));
  for (const float centre : facts->centres) {
    if (!(std::fabs(centre) <= kCentreMost)) return Corrupt(absl::StrCat("a centre is ", centre));
  }
  const Bytes bits = read.tables() == nullptr ? Bytes() : Bytes(read.tables()->data(), read.tables()->size());
  BitReader reader(bits);
  for (uint32_t i = 0; i < kDenseTables; ++i) {
    KVT_ASSIGN_OR_RETURN(const SymbolTable table, SymbolTable::Read(&reader));
    if (table.bits() != kDenseBits || table.escape() == SymbolTable::kNoEscape)
      return Corrupt(absl::StrCat("table ", i, " has ", table.bits(), " bits or no escape"));
    facts->tables.push_back(table);
  }
  if (reader.used() != bits.size())
    return Corrupt(absl::StrCat(reader.used(), " of ", bits.size(), " bytes of tables are used"));
  return std::shared_ptr<const DenseFacts>(std::move(facts));
}

flatbuffers::Offset<schema::ProfileDense> WriteDense(const DenseFacts& facts,
                                                     flatbuffers::FlatBufferBuilder* builder) {
  BitWriter writer;
  for (const SymbolTable& table : facts.tables) table.Write(&writer);
  const auto steps = builder->CreateVector(facts.steps);
  const auto ratios = builder->CreateVector(facts.ratios);
  const auto tables = builder->CreateVector(writer.bytes());
  const auto centres = builder->CreateVector(facts.centres);
  return schema::CreateProfileDense(*builder, steps, ratios, tables, centres);
}

}  // namespace kvt
