#include "codec/transform/kvtc.h"

#include <algorithm>

#include "codec/entropy/deflate.h"
#include "codec/raw.h"
#include "codec/transform/blas.h"
#include "codec/transform/kvtc_block.h"
#include "cpu/transform_rows.h"

namespace kvt {
namespace {

// Tokens of a matrix product, and of what is deflated at a time.
constexpr size_t kTileTokens = 256, kChunkTokens = 4096;
constexpr uint64_t kCountBytes = sizeof(uint16_t), kLengthBytes = sizeof(uint32_t);
constexpr uint64_t kHalfBytes = sizeof(uint16_t);
static_assert(kChunkTokens % kTileTokens == 0 && kTileTokens % 8 == 0);

Status Corrupt(absl::string_view text) { return Error(KVT_ERR_CORRUPT, absl::StrCat("kvtc: ", text)); }

size_t KeptOf(const std::vector<KvtcBlock>& blocks) {
  return blocks.empty() ? 0 : blocks.back().first + blocks.back().size;
}

uint64_t CodeBytes(KvtcType type, uint64_t count) { return (count * KvtcBits(type) + 7) / 8; }

// The shifts of all tokens, then their scales, then the codes, component after component.
uint64_t BlockBytes(const KvtcBlock& block, uint64_t count) {
  if (block.type == KvtcType::kNone) return 0;
  return 2 * kHalfBytes * count + block.size * CodeBytes(block.type, count);
}

uint64_t PackedBytes(const std::vector<KvtcBlock>& blocks, uint64_t count) {
  uint64_t bytes = 0;
  for (const KvtcBlock& block : blocks) bytes += BlockBytes(block, count);
  return bytes;
}

uint64_t Chunks(const SegmentShape& shape) { return (shape.coded() + kChunkTokens - 1) / kChunkTokens; }

uint64_t ExemptBytes(const ProfileGroup& group, const SegmentShape& shape) {
  return (group.layer_end - group.layer_begin) * (shape.exempt_first + shape.exempt_last) *
         shape.raw_row_bytes();
}

// A byte for each block: its type in the upper four bits, and the number of its size in the lower ones. The
// last one may have fewer components.
uint8_t* WriteBlocks(const std::vector<KvtcBlock>& blocks, uint8_t* to) {
  StoreLe(to, static_cast<uint16_t>(blocks.size()));
  to += kCountBytes;
  for (const KvtcBlock& block : blocks) {
    const auto size = std::lower_bound(kKvtcSizes.begin(), kKvtcSizes.end(), block.size) - kKvtcSizes.begin();
    *to++ = static_cast<uint8_t>(static_cast<uint32_t>(block.type) << 4 | static_cast<uint32_t>(size));
  }
  return to;
}

Status ReadBlocks(size_t components, Bytes* stored, std::vector<KvtcBlock>* blocks) {
  const size_t count = LoadLe<uint16_t>(stored->data());
  *stored = stored->subspan(kCountBytes);
  if (count > stored->size()) return Corrupt(absl::StrCat(count, " blocks in ", stored->size(), " bytes"));
  size_t first = 0;
  for (const uint8_t byte : stored->first(count)) {
    const uint32_t type = byte >> 4, size = byte & 15;
    if (type >= kKvtcTypes || size >= kKvtcSizes.size() || first >= components) {
      return Corrupt(absl::StrCat("block ", blocks->size(), " has type ", type, ", number ", size,
                                  " for its size and begins at component ", first, " of ", components));
    }
    const auto own = static_cast<uint32_t>(std::min<size_t>(kKvtcSizes[size], components - first));
    blocks->push_back({static_cast<uint32_t>(first), own, static_cast<KvtcType>(type)});
    first += own;
  }
  *stored = stored->subspan(count);
  return OkStatus();
}

void Pack(KvtcType type, const uint8_t* codes, size_t count, uint8_t* to) {
  const uint32_t bits = KvtcBits(type);
  std::fill_n(to, CodeBytes(type, count), uint8_t{0});
  for (size_t t = 0; t < count; ++t)
    to[t * bits / 8] = static_cast<uint8_t>(to[t * bits / 8] | codes[t] << t * bits % 8);
}

uint8_t CodeAt(KvtcType type, const uint8_t* from, size_t t) {
  const uint32_t bits = KvtcBits(type);
  return static_cast<uint8_t>(from[t * bits / 8] >> t * bits % 8 & ((1u << bits) - 1));
}

}  // namespace

KvtcMode::KvtcMode(std::shared_ptr<const Profile> profile, uint32_t ratio) : profile_(std::move(profile)) {
  const ProfileFacts& facts = profile_->facts();
  for (const ProfileGroup& group : facts.groups) {
    std::vector<float>& basis = bases_.emplace_back(group.components() * group.width());
    kernels::HalvesToFloats(group.basis, basis.size(), basis.data());
    const uint64_t bits = 8 * group.width() * ElementBytes(facts.element);
    blocks_.push_back(ratio == 0 ? std::vector<KvtcBlock>() : PlanKvtc(group.deviation, bits / ratio));
  }
}

uint64_t KvtcMode::StoredBytesMin(size_t index, const SegmentShape& shape) const {
  return ExemptBytes(group(index), shape) + kCountBytes + Chunks(shape) * kLengthBytes;
}

uint64_t KvtcMode::StoredBytesMax(size_t index, const SegmentShape& shape) const {
  const uint64_t chunks = shape.coded() / kChunkTokens;
  return StoredBytesMin(index, shape) + blocks(index).size() +
         chunks * PackedBytes(blocks(index), kChunkTokens) +
         PackedBytes(blocks(index), shape.coded() % kChunkTokens);
}

std::unique_ptr<GroupCoder> KvtcMode::NewCoder(const CodingJob& job) const {
  return std::make_unique<KvtcCoder>(*this, job);
}

void KvtcCoder::Project(size_t group, const SegmentShape& shape, size_t kept, uint64_t token, size_t count,
                        uint64_t* nonfinite) {
  const ProfileGroup& profile = mode_.group(group);
  tile_.resize(kTileTokens * profile.width());
  values_.resize(kept * count);
  for (size_t done = 0; done < count; done += kTileTokens) {
    const size_t tile = std::min(kTileTokens, count - done);
    rows_.Load(profile, shape, token + done, tile, tile_.data(), nonfinite);
    if (kept == 0) continue;
    blas::Multiply(kept, tile, profile.width(), {mode_.basis(group), profile.width()},
                   {tile_.data(), profile.width(), /*transposed=*/true}, values_.data() + done, count);
  }
}

void KvtcCoder::PackBlock(const KvtcBlock& block, size_t count, uint8_t* to) {
  const float* values = values_.data() + block.first * count;
  low_.assign(values, values + count);
  high_ = low_;
  for (size_t j = 1; j < block.size; ++j) {
    for (size_t t = 0; t < count; ++t) {
      low_[t] = std::min(low_[t], values[j * count + t]);
      high_[t] = std::max(high_[t], values[j * count + t]);
    }
  }
  std::vector<KvtcQuantizer> quantizers;
  quantizers.reserve(count);
  for (size_t t = 0; t < count; ++t) {
    const KvtcScale scale = KvtcScaleOf(block.type, low_[t], high_[t]);
    kernels::StoreHalf(scale.shift, to, t);
    kernels::StoreHalf(scale.scale, to, count + t);
    quantizers.emplace_back(block.type, scale);
  }
  to += 2 * kHalfBytes * count;
  std::vector<uint8_t> codes(count);
  for (size_t j = 0; j < block.size; ++j, to += CodeBytes(block.type, count)) {
    for (size_t t = 0; t < count; ++t) codes[t] = quantizers[t].Code(values[j * count + t]);
    Pack(block.type, codes.data(), count, to);
  }
}

uint64_t KvtcCoder::Encode(size_t index, const SegmentShape& shape, uint8_t* out, uint64_t* nonfinite) {
  const ProfileGroup& profile = mode_.group(index);
  const std::vector<KvtcBlock>& blocks = mode_.blocks(index);
  kernels::HashCopy unused(nullptr);
  uint8_t* to = out;
  for (uint32_t layer = profile.layer_begin; layer < profile.layer_end; ++layer) {
    RowWindow& rows = rows_.Select(layer, shape.stream);
    to += EncodeRaw(shape, rows, 0, shape.exempt_first, to, unused);
    to += EncodeRaw(shape, rows, shape.tokens - shape.exempt_last, shape.exempt_last, to, unused);
  }
  to = WriteBlocks(blocks, to);
  for (uint64_t token = 0; token < shape.coded(); token += kChunkTokens) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(kChunkTokens, shape.coded() - token));
    Project(index, shape, KeptOf(blocks), token, count, nonfinite);
    packed_.resize(PackedBytes(blocks, count));
    uint8_t* packed = packed_.data();
    for (const KvtcBlock& block : blocks) {
      if (block.type == KvtcType::kNone) continue;
      PackBlock(block, count, packed);
      packed += BlockBytes(block, count);
    }
    const std::vector<uint8_t> deflated = Deflate(Bytes(packed_));
    const std::vector<uint8_t>& shorter = deflated.empty() ? packed_ : deflated;
    StoreLe(to, static_cast<uint32_t>(shorter.size()));
    to = std::copy(shorter.begin(), shorter.end(), to + kLengthBytes);
  }
  return static_cast<uint64_t>(to - out);
}

void KvtcCoder::UnpackBlock(const KvtcBlock& block, size_t count, const uint8_t* from, size_t begin,
                            size_t end) {
  float* values = values_.data() + block.first * kTileTokens;
  if (block.type == KvtcType::kNone) {
    std::fill_n(values, block.size * kTileTokens, 0.0f);
    return;
  }
  std::vector<KvtcQuantizer> quantizers;
  quantizers.reserve(end - begin);
  for (size_t t = begin; t < end; ++t) {
    const KvtcScale scale{kernels::LoadHalf(from, t), kernels::LoadHalf(from, count + t)};
    quantizers.emplace_back(block.type, scale);
  }
  from += 2 * kHalfBytes * count;
  for (size_t j = 0; j < block.size; ++j, from += CodeBytes(block.type, count), values += kTileTokens)
    for (size_t t = begin; t < end; ++t)
      values[t - begin] = quantizers[t - begin].Value(CodeAt(block.type, from, t));
}

Status KvtcCoder::Decode(size_t index, const SegmentShape& shape, Bytes stored, uint32_t layer_begin,
                         uint32_t layer_end) {
  const ProfileGroup& profile = mode_.group(index);
  kernels::HashCopy unused(nullptr);
  const uint64_t exempt_bytes = ExemptBytes(profile, shape),
                 layer_bytes = exempt_bytes / (profile.layer_end - profile.layer_begin);
  for (uint32_t layer = layer_begin; layer < layer_end; ++layer) {
    RowWindow& rows = rows_.Select(layer, shape.stream);
    const uint8_t* exempt = stored.data() + (layer - profile.layer_begin) * layer_bytes;
    exempt += DecodeRaw(shape, exempt, rows, 0, shape.exempt_first, unused);
    DecodeRaw(shape, exempt, rows, shape.tokens - shape.exempt_last, shape.exempt_last, unused);
  }
  stored = stored.subspan(exempt_bytes);
  std::vector<KvtcBlock> blocks;
  KVT_RETURN_IF_ERROR(ReadBlocks(profile.components(), &stored, &blocks));
  const size_t kept = KeptOf(blocks), width = (layer_end - layer_begin) * shape.channels();
  const float* basis = mode_.basis(index) + (layer_begin - profile.layer_begin) * shape.channels();
  values_.assign(kept * kTileTokens, 0.0f);
  for (uint64_t token = 0; token < shape.coded(); token += kChunkTokens) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(kChunkTokens, shape.coded() - token));
    const uint64_t packed_bytes = PackedBytes(blocks, count);
    if (stored.size() < kLengthBytes) return Corrupt("it ends in a chunk's length");
    const uint64_t length = LoadLe<uint32_t>(stored.data());
    stored = stored.subspan(kLengthBytes);
    if (length > stored.size() || length > packed_bytes) {
      return Corrupt(
          absl::StrCat("a chunk of ", length, " bytes in ", stored.size(), ", stored ", packed_bytes));
    }
    packed_.resize(packed_bytes);
    if (length == packed_bytes) {
      std::copy_n(stored.begin(), length, packed_.begin());
    } else {
      KVT_RETURN_IF_ERROR(Inflate(stored.first(length), MutableBytes(packed_.data(), packed_bytes)));
    }
    stored = stored.subspan(length);
    for (size_t begin = 0; begin < count; begin += kTileTokens) {
      const size_t end = std::min(begin + kTileTokens, count);
      const uint8_t* from = packed_.data();
      for (const KvtcBlock& block : blocks) {
        UnpackBlock(block, count, from, begin, end);
        from += BlockBytes(block, count);
      }
      tile_.assign(kTileTokens * width, 0.0f);
      if (kept != 0) {
        blas::Multiply(end - begin, width, kept, {values_.data(), kTileTokens, /*transposed=*/true},
                       {basis, profile.width()}, tile_.data(), width);
      }
      rows_.Store(profile, shape, token + begin, end - begin, layer_begin, layer_end, tile_.data());
    }
  }
  return stored.empty() ? OkStatus() : Corrupt(absl::StrCat(stored.size(), " bytes too many"));
}

}  // namespace kvt
