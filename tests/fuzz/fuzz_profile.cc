// A profile's bytes, as they are and with length and checksum made right. One that is taken describes, wraps
// and unwraps; one of the right model encodes rows into frames that it decodes.
#include "codec/profile_frame.h"
#include "codec/profile_layout.h"
#include "codec/profile_rungs.h"
#include "cpu/hash_copy.h"
#include "fuzz/small.h"

namespace {

using kvt::fuzz::Require;

constexpr size_t kHeaderLengthAt = 8, kPayloadLengthAt = 16, kChecksumAt = 56;
constexpr uint64_t kTokens = 12;

void Use(const std::shared_ptr<const kvt::Model>& model, kvt::Bytes bytes, uint32_t ratio_min) {
  kvt::fuzz::Rows rows(model, kTokens);
  rows.Fill();
  for (const uint32_t ratio : {ratio_min, kvt::kRatioMax}) {
    const auto codec = kvt::fuzz::MakeCodec(model, "transform", kvt::AsText(bytes), ratio);
    Require(codec.ok());
    const std::vector<uint8_t> frame = kvt::fuzz::Encode(**codec, rows.view());
    const kvt::View view = rows.view();
    Require((*codec)->Decode(kvt::Bytes(frame), kvt::fuzz::SpecOf(view), view).ok());
    rows.RequireGuards();
  }
}

void Read(kvt::Bytes bytes) {
  static const std::shared_ptr<const kvt::Model> model = kvt::fuzz::SmallModel();
  const auto profile = kvt::Profile::Parse(bytes);
  const auto wrapped = kvt::WrapProfile(bytes, {});
  Require(profile.ok() == wrapped.ok());
  if (!profile.ok()) return;
  Require(!kvt::DescribeProfile(**profile).empty());
  const auto unwrapped = kvt::UnwrapProfile(kvt::AsBytes(*wrapped));
  Require(unwrapped.ok() && kvt::AsText(*unwrapped) == kvt::AsText(bytes));
  if ((*profile)->CheckModel(*model).ok()) Use(model, bytes, (*profile)->facts().ratio_min);
}

// What may follow a profile, as it is and with a checksum made right: what is taken is written as it was.
void ReadRungs(std::vector<uint8_t> bytes) {
  constexpr size_t kRungsChecksumAt = 16, kRungsChecksumEnd = 24;
  (void)kvt::ReadProfileRungs(kvt::Bytes(bytes));
  if (bytes.size() < kRungsChecksumEnd) return;
  kvt::kernels::HashCopy hash(nullptr);
  hash.Add(bytes.data(), kRungsChecksumAt);
  hash.Add(bytes.data() + kRungsChecksumEnd, bytes.size() - kRungsChecksumEnd);
  kvt::StoreLe<uint64_t>(bytes.data() + kRungsChecksumAt, hash.Digest());
  const auto read = kvt::ReadProfileRungs(kvt::Bytes(bytes));
  if (!read.ok()) return;
  Require(!kvt::DescribeRungs(*read).empty());
  const auto written = kvt::WriteProfileRungs(read->rungs, read->processor);
  Require(written.ok() && *written == kvt::AsText(kvt::Bytes(bytes)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Read(kvt::Bytes(data, size));
  (void)kvt::UnwrapProfile(kvt::Bytes(data, size));
  ReadRungs(std::vector<uint8_t>(data, data + size));
  if (size < kvt::kProfilePrefixBytes) return 0;
  std::vector<uint8_t> sealed(data, data + size);
  const auto header = kvt::LoadLe<uint64_t>(data + kHeaderLengthAt);
  // A payload that ends early leaves what follows to be rungs.
  uint64_t own = size;
  if (header <= size) {
    const uint64_t payload_at = kvt::AlignFrame(kvt::kProfilePrefixBytes + header);
    const auto payload = kvt::LoadLe<uint64_t>(data + kPayloadLengthAt);
    if (payload_at <= size && payload <= size - payload_at) {
      own = payload_at + payload;
    } else if (payload_at <= size) {
      kvt::StoreLe<uint64_t>(sealed.data() + kPayloadLengthAt, size - payload_at);
    }
  }
  kvt::kernels::HashCopy hash(nullptr);
  hash.Add(sealed.data(), kChecksumAt);
  hash.Add(sealed.data() + kvt::kProfilePrefixBytes, own - kvt::kProfilePrefixBytes);
  kvt::StoreLe<uint64_t>(sealed.data() + kChecksumAt, hash.Digest());
  Read(kvt::Bytes(sealed));
  return 0;
}
