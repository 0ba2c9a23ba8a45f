#include "codec/profile_rungs.h"

#include <algorithm>

#include "codec/rung.h"
#include "cpu/hash_copy.h"

namespace kvt {
namespace {

constexpr char kMagic[4] = {'K', 'V', 'T', 'L'};
constexpr uint32_t kVersion = 1;
constexpr size_t kVersionAt = 4, kCountAt = 8, kZeroAt = 12, kChecksumAt = 16, kProcessorAt = 24;
constexpr size_t kPrefixBytes = 128;
constexpr size_t kProcessorMax = kPrefixBytes - kProcessorAt - 1;
constexpr uint32_t kRungsMax = 64;

// A rung as it is stored.
struct StoredRung {
  char codec[24];
  uint32_t ratio;
  uint32_t quality_class;
  double encode_rate, decode_rate, reached;
  uint64_t zero;
};
static_assert(sizeof(StoredRung) == 64);
static_assert(sizeof(StoredRung::codec) == sizeof(kvt_profile_rung_t::codec));

// Of all bytes but the checksum's own.
uint64_t ChecksumOf(Bytes bytes) {
  kernels::HashCopy hash(nullptr);
  hash.Add(bytes.data(), kChecksumAt);
  hash.Add(bytes.data() + kProcessorAt, bytes.size() - kProcessorAt);
  return hash.Digest();
}

// Text that can stand in JSON as it is.
bool IsPlain(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

// The text before the first NUL, if all behind it are NULs too and there is one.
StatusOr<absl::string_view> TextOf(kvt_status_t code, absl::string_view name, const char* field,
                                   size_t size) {
  const absl::string_view all(field, size);
  const size_t length = std::min(all.find('\0'), size);
  if (length == size || all.find_first_not_of('\0', length) != absl::string_view::npos)
    return Error(code, absl::StrCat(name, " is not text filled up with NULs"));
  const absl::string_view text = all.substr(0, length);
  if (text.empty() || !IsPlain(text))
    return Error(code, absl::StrCat(name, " is empty, or has more than printable ASCII without \" and \\"));
  return text;
}

Status CheckProfileRung(kvt_status_t code, size_t index, const kvt_profile_rung_t& rung) {
  const std::string name = absl::StrCat(code == KVT_ERR_CORRUPT ? "profile: " : "", "rungs[", index, "].");
  KVT_RETURN_IF_ERROR(TextOf(code, absl::StrCat(name, "codec"), rung.codec, sizeof rung.codec).status());
  if (rung.reserved != 0)
    return Error(code, absl::StrCat(name, "reserved is ", rung.reserved, ", expected 0"));
  return CheckRung(code, absl::StrCat(name, "cost."), rung.cost);
}

Status Corrupt(absl::string_view text) {
  return Error(KVT_ERR_CORRUPT, absl::StrCat("profile: rungs: ", text));
}

}  // namespace

StatusOr<std::string> WriteProfileRungs(absl::Span<const kvt_profile_rung_t> rungs,
                                        absl::string_view processor) {
  const size_t count = rungs.size();
  if (count < 1 || count > kRungsMax) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("count of rungs is ", count, ", expected up to ", kRungsMax));
  }
  if (processor.empty() || processor.size() > kProcessorMax) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("processor_len is ", processor.size(), ", expected 1 to ", kProcessorMax));
  }
  if (!IsPlain(processor))
    return Error(KVT_ERR_INVALID_ARGUMENT, "processor has more than printable ASCII without \" and \\");
  std::string bytes(kPrefixBytes + count * sizeof(StoredRung), '\0');
  std::memcpy(bytes.data(), kMagic, sizeof kMagic);
  StoreLe(bytes.data() + kVersionAt, kVersion);
  StoreLe(bytes.data() + kCountAt, static_cast<uint32_t>(count));
  std::memcpy(bytes.data() + kProcessorAt, processor.data(), processor.size());
  for (size_t i = 0; i < count; ++i) {
    const kvt_profile_rung_t& rung = rungs[i];
    KVT_RETURN_IF_ERROR(CheckProfileRung(KVT_ERR_INVALID_ARGUMENT, i, rung));
    StoredRung stored = {};
    std::memcpy(stored.codec, rung.codec, sizeof stored.codec);
    stored.ratio = rung.ratio;
    stored.quality_class = rung.cost.quality_class;
    stored.encode_rate = rung.cost.encode_rate;
    stored.decode_rate = rung.cost.decode_rate;
    stored.reached = rung.cost.ratio;
    StoreLe(bytes.data() + kPrefixBytes + i * sizeof stored, stored);
  }
  StoreLe(bytes.data() + kChecksumAt, ChecksumOf(AsBytes(bytes)));
  return bytes;
}

StatusOr<ProfileRungs> ReadProfileRungs(Bytes bytes) {
  if (bytes.size() < kPrefixBytes)
    return Corrupt(absl::StrCat(bytes.size(), " bytes follow the profile, the prefix has ", kPrefixBytes));
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return Corrupt("do not begin with KVTL");
  const auto version = LoadLe<uint32_t>(bytes.data() + kVersionAt);
  if (version != kVersion) {
    return Error(KVT_ERR_VERSION,
                 absl::StrCat("profile: rungs: version is ", version, ", this library reads ", kVersion));
  }
  const auto count = LoadLe<uint32_t>(bytes.data() + kCountAt);
  if (count < 1 || count > kRungsMax)
    return Corrupt(absl::StrCat("are ", count, ", expected 1 to ", kRungsMax));
  if (bytes.size() != kPrefixBytes + count * sizeof(StoredRung))
    return Corrupt(absl::StrCat(count, " of them do not have ", bytes.size(), " bytes"));
  if (ChecksumOf(bytes) != LoadLe<uint64_t>(bytes.data() + kChecksumAt))
    return Corrupt("their bytes do not have their checksum");
  if (LoadLe<uint32_t>(bytes.data() + kZeroAt) != 0) return Corrupt("a reserved field is not 0");
  ProfileRungs rungs;
  KVT_ASSIGN_OR_RETURN(
      const absl::string_view processor,
      TextOf(KVT_ERR_CORRUPT, "profile: rungs: processor",
             reinterpret_cast<const char*>(bytes.data()) + kProcessorAt, kPrefixBytes - kProcessorAt));
  rungs.processor = std::string(processor);
  for (size_t i = 0; i < count; ++i) {
    const auto stored = LoadLe<StoredRung>(bytes.data() + kPrefixBytes + i * sizeof(StoredRung));
    if (stored.zero != 0) return Corrupt("a reserved field is not 0");
    kvt_profile_rung_t rung = {};
    std::memcpy(rung.codec, stored.codec, sizeof rung.codec);
    rung.ratio = stored.ratio;
    rung.cost = {stored.encode_rate, stored.decode_rate, stored.reached, stored.quality_class, 0};
    KVT_RETURN_IF_ERROR(CheckProfileRung(KVT_ERR_CORRUPT, i, rung));
    rungs.rungs.push_back(rung);
  }
  return rungs;
}

std::string DescribeRungs(const ProfileRungs& rungs) {
  std::string json = "[";
  for (const kvt_profile_rung_t& rung : rungs.rungs) {
    absl::StrAppend(&json, json.size() == 1 ? "" : ",", "{\"codec\":\"", rung.codec,
                    "\",\"ratio\":", rung.ratio, ",\"encode_rate\":", rung.cost.encode_rate,
                    ",\"decode_rate\":", rung.cost.decode_rate, ",\"reached\":", rung.cost.ratio,
                    ",\"quality_class\":", rung.cost.quality_class, "}");
  }
  return json + "]";
}

}  // namespace kvt
