#include "codec/profile_layout.h"

#include "codec/profile_dense.h"
#include "cpu/hash_copy.h"

namespace kvt {
namespace {

constexpr char kMagic[4] = {'K', 'V', 'T', 'P'};
constexpr uint64_t kVersionAt = 4, kHeaderLengthAt = 8, kPayloadLengthAt = 16, kReservedAt = 24,
                   kChecksumAt = 56;

Status Corrupt(absl::string_view text) { return Error(KVT_ERR_CORRUPT, absl::StrCat("profile: ", text)); }

uint64_t Align(uint64_t bytes) {
  return (bytes + kProfileAlignment - 1) / kProfileAlignment * kProfileAlignment;
}

// Of all bytes but the checksum's own.
uint64_t ChecksumOf(Bytes bytes) {
  kernels::HashCopy hash(nullptr);
  hash.Add(bytes.data(), kChecksumAt);
  hash.Add(bytes.data() + kProfilePrefixBytes, bytes.size() - kProfilePrefixBytes);
  return hash.Digest();
}

uint64_t PayloadOffset(Bytes bytes) {
  return Align(kProfilePrefixBytes + LoadLe<uint64_t>(bytes.data() + kHeaderLengthAt));
}

template <typename T>
std::vector<T> Copy(const flatbuffers::Vector<T>* field) {
  return field == nullptr ? std::vector<T>() : std::vector<T>(field->begin(), field->end());
}

Status ReadGroup(const schema::ProfileGroup& read, const ProfileFacts& facts, Bytes payload, size_t index,
                 ProfileGroup* group) {
  const std::string name = absl::StrCat("group ", index);
  group->stream = read.stream();
  if (group->stream >= facts.streams)
    return Corrupt(absl::StrCat(name, ": stream is ", group->stream, ", streams are ", facts.streams));
  group->layer_begin = read.layer_begin();
  group->layer_end = read.layer_end();
  group->mean = Copy(read.mean());
  group->amplitude = Copy(read.amplitude());
  group->deviation = Copy(read.deviation());
  group->metric = Copy(read.metric());
  group->spread = Copy(read.spread());
  group->leading = read.leading();
  const uint64_t offset = read.basis_offset();
  const uint64_t length = uint64_t{group->width()} * group->components() * sizeof(uint16_t);
  if (offset % kProfileAlignment != 0 || offset > payload.size() || length > payload.size() - offset) {
    return Corrupt(absl::StrCat(name, ": a basis of ", length, " bytes at ", offset,
                                " is unaligned or goes beyond the payload of ", payload.size()));
  }
  group->basis = payload.data() + offset;
  return OkStatus();
}

Status ReadBooks(const schema::ProfileHeader& read, ProfileFacts* facts) {
  if (read.books() == nullptr || read.books()->size() != kBookBitsMax) {
    return Corrupt(absl::StrCat("books are ", read.books() == nullptr ? 0 : read.books()->size(),
                                ", expected ", kBookBitsMax));
  }
  for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) {
    const schema::ProfileBook* book = read.books()->Get(bits - 1);
    if (book->bits() != bits)
      return Corrupt(absl::StrCat("book ", bits - 1, " is of ", book->bits(), " bits, expected ", bits));
    facts->books[bits].levels = Copy(book->levels());
    facts->books[bits].distortion = book->distortion();
  }
  return OkStatus();
}

}  // namespace

StatusOr<uint64_t> CheckProfilePrefix(Bytes bytes) {
  if (bytes.size() < kProfilePrefixBytes)
    return Corrupt(absl::StrCat(bytes.size(), " bytes, the prefix has ", kProfilePrefixBytes));
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return Corrupt("does not begin with KVTP");
  const uint32_t version = LoadLe<uint32_t>(bytes.data() + kVersionAt);
  if (version != kProfileVersion) {
    return Error(KVT_ERR_VERSION,
                 absl::StrCat("profile: version is ", version, ", this library reads ", kProfileVersion));
  }
  const uint64_t header = LoadLe<uint64_t>(bytes.data() + kHeaderLengthAt);
  const uint64_t payload = LoadLe<uint64_t>(bytes.data() + kPayloadLengthAt);
  const uint64_t size = bytes.size();
  if (header > size || payload > size || Align(kProfilePrefixBytes + header) + payload > size) {
    return Corrupt(absl::StrCat("a header of ", header, " and a payload of ", payload, " are more than ",
                                size, " bytes"));
  }
  const uint64_t own_size = Align(kProfilePrefixBytes + header) + payload;
  for (uint64_t i = kReservedAt; i < kChecksumAt; ++i) {
    if (bytes[i] != 0) return Corrupt(absl::StrCat("reserved byte ", i, " is ", bytes[i], ", expected 0"));
  }
  if (ChecksumOf(bytes.first(own_size)) != LoadLe<uint64_t>(bytes.data() + kChecksumAt))
    return Corrupt("its bytes do not have its checksum");
  return own_size;
}

Status ReadProfileFacts(Bytes bytes, ProfileFacts* facts) {
  const Bytes header = bytes.subspan(kProfilePrefixBytes, LoadLe<uint64_t>(bytes.data() + kHeaderLengthAt));
  const Bytes payload = bytes.subspan(PayloadOffset(bytes));
  const auto most_tables = static_cast<flatbuffers::uoffset_t>(header.size() / 8 + 1);
  flatbuffers::Verifier verifier(header.data(), header.size(), /*max_depth=*/4, most_tables);
  if (header.size() < 8 || !schema::VerifyProfileHeaderBuffer(verifier))
    return Corrupt("the header is not a well-formed FlatBuffers table of kind KVTP");
  const schema::ProfileHeader& read = *schema::GetProfileHeader(header.data());
  if (read.model() == nullptr || read.model()->size() != facts->model.size()) {
    return Corrupt(absl::StrCat("model has ", read.model() == nullptr ? 0 : read.model()->size(),
                                " bytes, expected ", facts->model.size()));
  }
  std::memcpy(facts->model.data(), read.model()->data(), facts->model.size());
  facts->layer_begin = read.layer_begin();
  facts->layer_end = read.layer_end();
  facts->head_begin = read.head_begin();
  facts->head_end = read.head_end();
  facts->streams = read.streams();
  facts->element = read.element();
  if (facts->streams < 1 || facts->streams > facts->dims.size())
    return Corrupt(absl::StrCat("streams are ", facts->streams, ", expected 1 or 2"));
  if (read.dims() == nullptr || read.dims()->size() != facts->streams) {
    return Corrupt(absl::StrCat("dims are ", read.dims() == nullptr ? 0 : read.dims()->size(), ", expected ",
                                facts->streams));
  }
  for (uint32_t stream = 0; stream < facts->streams; ++stream) facts->dims[stream] = read.dims()->Get(stream);
  facts->ratio_min = read.ratio_min();
  facts->tokens = read.tokens();
  facts->documents = read.documents();
  if (read.groups() == nullptr || read.groups()->size() == 0 || read.groups()->size() > 2048)
    return Corrupt(absl::StrCat("groups are ", read.groups() == nullptr ? 0 : read.groups()->size()));
  facts->groups.resize(read.groups()->size());
  for (uint32_t i = 0; i < read.groups()->size(); ++i)
    KVT_RETURN_IF_ERROR(ReadGroup(*read.groups()->Get(i), *facts, payload, i, &facts->groups[i]));
  if (read.escapes() == nullptr || read.escapes()->size() != facts->escapes.size()) {
    return Corrupt(absl::StrCat("escapes are ", read.escapes() == nullptr ? 0 : read.escapes()->size(),
                                ", expected ", facts->escapes.size()));
  }
  std::copy(read.escapes()->begin(), read.escapes()->end(), facts->escapes.begin());
  if (read.dense() != nullptr) {
    KVT_ASSIGN_OR_RETURN(facts->dense, ReadDense(*read.dense()));
  }
  return ReadBooks(read, facts);
}

std::string WriteProfile(const ProfileFacts& facts) {
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  builder.ForceDefaults(true);
  std::vector<flatbuffers::Offset<schema::ProfileGroup>> groups;
  uint64_t payload_length = 0;
  for (const ProfileGroup& group : facts.groups) {
    const auto mean = builder.CreateVector(group.mean);
    const auto amplitude = builder.CreateVector(group.amplitude);
    const auto deviation = builder.CreateVector(group.deviation);
    const auto metric = builder.CreateVector(group.metric);
    const auto spread = builder.CreateVector(group.spread);
    groups.push_back(schema::CreateProfileGroup(builder, static_cast<uint8_t>(group.stream),
                                                static_cast<uint16_t>(group.layer_begin),
                                                static_cast<uint16_t>(group.layer_end), mean, amplitude,
                                                deviation, payload_length, metric, spread, group.leading));
    payload_length = Align(payload_length + group.width() * group.components() * sizeof(uint16_t));
  }
  std::vector<flatbuffers::Offset<schema::ProfileBook>> books;
  for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) {
    const auto levels = builder.CreateVector(facts.books[bits].levels);
    books.push_back(
        schema::CreateProfileBook(builder, static_cast<uint8_t>(bits), levels, facts.books[bits].distortion));
  }
  const auto model = builder.CreateVector(facts.model.data(), facts.model.size());
  std::vector<uint16_t> dim_list;
  for (uint32_t stream = 0; stream < facts.streams; ++stream)
    dim_list.push_back(static_cast<uint16_t>(facts.dims[stream]));
  const auto dims = builder.CreateVector(dim_list);
  const auto group_table = builder.CreateVector(groups);
  const auto book_table = builder.CreateVector(books);
  const auto escapes = builder.CreateVector(facts.escapes.data(), facts.escapes.size());
  flatbuffers::Offset<schema::ProfileDense> dense;
  if (facts.dense != nullptr) dense = WriteDense(*facts.dense, &builder);
  schema::FinishProfileHeaderBuffer(
      builder,
      schema::CreateProfileHeader(
          builder, model, static_cast<uint16_t>(facts.layer_begin), static_cast<uint16_t>(facts.layer_end),
          static_cast<uint16_t>(facts.head_begin), static_cast<uint16_t>(facts.head_end),
          static_cast<uint8_t>(facts.streams), static_cast<uint8_t>(facts.element), dims, facts.ratio_min,
          facts.tokens, facts.documents, group_table, book_table, escapes, dense));
  const uint64_t header_length = builder.GetSize();
  const uint64_t payload_offset = Align(kProfilePrefixBytes + header_length);
  std::string bytes(payload_offset + payload_length, '\0');
  auto* begin = reinterpret_cast<uint8_t*>(bytes.data());
  std::memcpy(begin, kMagic, sizeof kMagic);
  StoreLe(begin + kVersionAt, kProfileVersion);
  StoreLe(begin + kHeaderLengthAt, header_length);
  StoreLe(begin + kPayloadLengthAt, payload_length);
  std::memcpy(begin + kProfilePrefixBytes, builder.GetBufferPointer(), header_length);
  uint8_t* basis = begin + payload_offset;
  for (const ProfileGroup& group : facts.groups) {
    const uint64_t length = group.width() * group.components() * sizeof(uint16_t);
    std::memcpy(basis, group.basis, length);
    basis += Align(length);
  }
  StoreLe(begin + kChecksumAt, ChecksumOf(Bytes(begin, bytes.size())));
  return bytes;
}

}  // namespace kvt
