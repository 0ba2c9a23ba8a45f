#include "codec/transform/dense_segment.h"

#include "codec/entropy/entropy.h"
#include "codec/lossy.h"
#include "codec/raw.h"
#include "codec/transform/blas.h"
#include "cpu/transform_codes.h"

namespace kvt {
namespace {

using kernels::kRansStatesMin;

constexpr uint8_t kRawRows = 0;
// Flags of a front.
constexpr uint8_t kHasImportance = 1, kIsScalar = 2;
// Of the last exempt tokens, those that stay bytes when the others are coded with a finer step.
constexpr uint64_t kBytesOfWindow = 32;
constexpr int8_t kFiner = -8;
constexpr uint8_t kGainZero = 128, kImportanceZero = 64;

Status Corrupt(absl::string_view text) { return Error(KVT_ERR_CORRUPT, std::string(text)); }

// Codes or decodes exempt tokens [token, token + count) of a layer as bytes.
SegmentShape BytesShape(const SegmentShape& shape, uint64_t count) {
  SegmentShape own = shape;
  own.tokens = count;
  own.exempt_first = own.exempt_last = 0;
  return own;
}

const SegmentCodec& ByteCodec() {
  static const SegmentCodec* const codec = MakeInt8Codec().release();
  return *codec;
}

uint64_t ExemptLayerBytes(const SegmentShape& shape, uint64_t first, uint64_t last, Exempt exempt) {
  if (exempt == Exempt::kRaw) return (first + last) * shape.raw_row_bytes();
  return ByteCodec().StoredBytes(BytesShape(shape, first)) + ByteCodec().StoredBytes(BytesShape(shape, last));
}

struct Run {
  uint64_t token, count;
};
std::array<Run, 2> RunsOf(const SegmentShape& shape, uint64_t first, uint64_t last) {
  return {{{0, first}, {shape.tokens - last, last}}};
}

template <typename T>
bool Take(Bytes* in, T* value) {
  if (in->size() < sizeof *value) return false;
  *value = LoadLe<T>(in->data());
  in->remove_prefix(sizeof *value);
  return true;
}

bool TakePart(Bytes* in, uint32_t length, Bytes* part) {
  if (length > in->size()) return false;
  *part = in->first(length);
  in->remove_prefix(length);
  return true;
}

void Append(std::vector<uint8_t>* out, uint32_t value) {
  out->resize(out->size() + sizeof value);
  StoreLe(out->data() + out->size() - sizeof value, value);
}

}  // namespace

DenseCoder::Split::Split(const SegmentShape& shape, Exempt exempt)
    : kept_first(shape.exempt_first), kept_last(shape.exempt_last) {
  // Where no token is between them, a header does not tell first from last.
  if (exempt == Exempt::kFiner && shape.coded() != 0) {
    kept_last = std::min(kept_last, kBytesOfWindow);
    fine = shape.exempt_last - kept_last;
  }
  coded = shape.tokens - kept_first - kept_last;
}

void DenseCoder::Plan(size_t group, int32_t step) {
  step_ = step;
  const ProfileGroup& own = mode_.group(group);
  classes_.resize(DenseKept(own, step));
  for (size_t j = 0; j < classes_.size(); ++j) classes_[j] = ClassOf(SixteenthsOf(own.deviation[j]), step);
  values_.resize(DenseWalk::kTokens * classes_.size());
  tile_.resize(DenseWalk::kTokens * own.width());
}

void DenseCoder::EncodeExempt(const ProfileGroup& group, const SegmentShape& shape, const Split& split,
                              uint64_t* nonfinite) {
  kernels::HashCopy unused(nullptr);
  const uint64_t layer_bytes = ExemptLayerBytes(shape, split.kept_first, split.kept_last, mode_.exempt());
  for (uint32_t layer = group.layer_begin; layer < group.layer_end; ++layer) {
    const size_t begin = out_.size();
    out_.resize(begin + layer_bytes);
    uint8_t* to = out_.data() + begin;
    for (const Run& run : RunsOf(shape, split.kept_first, split.kept_last)) {
      const auto [token, count] = run;
      if (mode_.exempt() == Exempt::kRaw) {
        to += EncodeRaw(shape, rows_.Select(layer, shape.stream), token, count, to, unused);
      } else {
        RowWindow& rows = rows_.Select(layer, shape.stream, token);
        to += ByteCodec().EncodeSegment(BytesShape(shape, count), rows, to, unused, nonfinite);
      }
    }
  }
}

Status DenseCoder::DecodeExempt(const ProfileGroup& group, const SegmentShape& shape, const Split& split,
                                Exempt exempt, uint32_t layer_begin, uint32_t layer_end, Bytes* in) {
  kernels::HashCopy unused(nullptr);
  const uint64_t layer_bytes = ExemptLayerBytes(shape, split.kept_first, split.kept_last, exempt);
  const uint64_t all_bytes = layer_bytes * (group.layer_end - group.layer_begin);
  if (in->size() < all_bytes)
    return Corrupt(absl::StrCat(in->size(), " bytes, exempt tokens have ", all_bytes));
  for (uint32_t layer = layer_begin; layer < layer_end; ++layer) {
    const uint8_t* from = in->data() + (layer - group.layer_begin) * layer_bytes;
    for (const Run& run : RunsOf(shape, split.kept_first, split.kept_last)) {
      const auto [token, count] = run;
      if (exempt == Exempt::kRaw) {
        from += DecodeRaw(shape, from, rows_.Select(layer, shape.stream), token, count, unused);
      } else {
        const SegmentShape own = BytesShape(shape, count);
        const uint64_t bytes = ByteCodec().StoredBytes(own);
        RowWindow& rows = rows_.Select(layer, shape.stream, token);
        KVT_RETURN_IF_ERROR(ByteCodec().DecodeSegment(own, Bytes(from, bytes), rows, unused));
        from += bytes;
      }
    }
  }
  in->remove_prefix(all_bytes);
  return OkStatus();
}

void DenseCoder::SetTokens(const SegmentShape& shape, const Split& split) {
  tokens_.assign(split.coded, {});
  for (uint64_t t = 0; t < split.coded; ++t) {
    if (importance_ != nullptr) tokens_[t].importance = importance_[shape.exempt_first + t];
    if (t >= split.coded - split.fine) tokens_[t].importance = kFiner;
  }
}

void DenseCoder::AppendNumbers(int8_t DenseWalk::Token::*number, int32_t zero, const Split& split) {
  const size_t begin = out_.size();
  bytes_.clear();
  const uint64_t count = number == &DenseWalk::Token::gain ? split.coded : split.coded - split.fine;
  for (uint64_t t = 0; t < count; ++t) bytes_.push_back(static_cast<uint8_t>(tokens_[t].*number + zero));
  out_.resize(begin + sizeof(uint32_t) + EntropyBound(count));
  const uint64_t length = EncodeSymbols(Bytes(bytes_.data(), count), nullptr,
                                        MutableBytes(out_).subspan(begin + sizeof(uint32_t)));
  StoreLe(out_.data() + begin, static_cast<uint32_t>(length));
  out_.resize(begin + sizeof(uint32_t) + length);
}

Status DenseCoder::ReadNumbers(int8_t DenseWalk::Token::*number, int32_t zero, int32_t least, int32_t most,
                               const Split& split, Bytes* in) {
  const uint64_t count = number == &DenseWalk::Token::gain ? split.coded : split.coded - split.fine;
  uint32_t length = 0;
  Bytes coded;
  if (!Take(in, &length) || !TakePart(in, length, &coded))
    return Corrupt(absl::StrCat("numbers of tokens take ", length, " bytes, left are ", in->size()));
  bytes_.resize(count);
  KVT_RETURN_IF_ERROR(DecodeSymbols(coded, nullptr, MutableBytes(bytes_.data(), count)));
  for (uint64_t t = 0; t < count; ++t) {
    const int32_t value = bytes_[t] - zero;
    if (value < least || value > most)
      return Corrupt(absl::StrCat("token ", t, ": ", value, " quarters, expected ", least, " to ", most));
    tokens_[t].*number = static_cast<int8_t>(value);
  }
  return OkStatus();
}

void DenseCoder::EncodeBlock(size_t group, const SegmentShape& shape, uint64_t token, size_t count,
                             uint64_t* nonfinite) {
  const ProfileGroup& own = mode_.group(group);
  const size_t kept = classes_.size(), leading = std::min<size_t>(own.leading, kept);
  rows_.Load(own, shape, token, count, tile_.data(), nonfinite);
  if (kept != 0) {
    blas::Multiply(kept, count, own.width(), {mode_.basis(group), own.width()},
                   {tile_.data(), own.width(), /*transposed=*/true}, values_.data(), DenseWalk::kTokens);
  }
  scratch_.assign(count, 0.0f);
  for (size_t j = 0; j < leading; ++j) {
    kernels::AddSquares(values_.data() + j * DenseWalk::kTokens, count, 1 / own.deviation[j],
                        scratch_.data());
  }
  DenseWalk::Token* tokens = tokens_.data() + token;
  for (size_t t = 0; t < count; ++t)
    tokens[t].gain = leading == 0 ? 0 : GainOf(scratch_[t] / static_cast<float>(leading));
  walk_.Run(mode_.tables(), mode_.quantiser(), step_, classes_, values_.data(), {tokens, count});
  AppendBlock(count);
}

void DenseCoder::AppendBlock(size_t count) {
  const DenseTables& tables = mode_.tables();
  const size_t kept = classes_.size();
  bytes_.clear();
  for (size_t j = 0; j < kept; ++j) {
    for (size_t t = 0; t < count; ++t) {
      if (tables.Holds(walk_.table(j, t), walk_.code(j, t))) continue;
      uint32_t folded = FoldCode(walk_.code(j, t));
      for (; folded >= 128; folded >>= 7) bytes_.push_back(static_cast<uint8_t>(folded | 128));
      bytes_.push_back(static_cast<uint8_t>(folded));
    }
  }
  words_.resize(kept * count * kernels::kRansWordBytes + kRansStatesMin * kernels::kRansStateBytes);
  kernels::RansEncoder encoder(kRansStatesMin, words_.data() + words_.size());
  for (size_t j = kept; j-- > 0;) {
    for (size_t t = count; t-- > 0;) {
      const uint32_t table = walk_.table(j, t);
      const int32_t code = walk_.code(j, t);
      const uint32_t symbol = tables.Holds(table, code) ? FoldCode(code) : tables.table(table).escape();
      encoder.AddOne(tables.codes(table)[symbol], t % kRansStatesMin);
    }
  }
  const uint8_t* stream = encoder.Finish();
  Append(&blocks_, static_cast<uint32_t>(bytes_.size()));
  Append(&blocks_, static_cast<uint32_t>(words_.data() + words_.size() - stream));
  blocks_.insert(blocks_.end(), bytes_.begin(), bytes_.end());
  const auto used = static_cast<ptrdiff_t>(stream - words_.data());
  blocks_.insert(blocks_.end(), words_.begin() + used, words_.end());
}

uint64_t DenseCoder::Encode(size_t group, const SegmentShape& shape, uint8_t* out, uint64_t* nonfinite) {
  const ProfileGroup& own = mode_.group(group);
  const Split split(shape, mode_.exempt());
  Plan(group, mode_.step());
  SetTokens(shape, split);
  blocks_.clear();
  for (uint64_t token = 0; token < split.coded; token += DenseWalk::kTokens) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(DenseWalk::kTokens, split.coded - token));
    EncodeBlock(group, shape, token, count, nonfinite);
  }
  out_.assign(kFrontBytes, 0);
  out_[0] = static_cast<uint8_t>(mode_.exempt());
  out_[1] = static_cast<uint8_t>((importance_ != nullptr ? kHasImportance : 0) |
                                 (mode_.quantiser() == Quantiser::kScalar ? kIsScalar : 0));
  StoreLe(out_.data() + 2, static_cast<int16_t>(step_));
  EncodeExempt(own, shape, split, nonfinite);
  AppendNumbers(&DenseWalk::Token::gain, kGainZero, split);
  if (importance_ != nullptr) AppendNumbers(&DenseWalk::Token::importance, kImportanceZero, split);
  if (out_.size() + blocks_.size() >= mode_.StoredBytesMax(group, shape)) return StoreRaw(own, shape, out);
  std::copy(out_.begin(), out_.end(), out);
  std::copy(blocks_.begin(), blocks_.end(), out + out_.size());
  return out_.size() + blocks_.size();
}

uint64_t DenseCoder::StoreRaw(const ProfileGroup& group, const SegmentShape& shape, uint8_t* out) {
  kernels::HashCopy unused(nullptr);
  uint8_t* to = out;
  to = std::fill_n(to, kFrontBytes, kRawRows);
  for (uint32_t layer = group.layer_begin; layer < group.layer_end; ++layer)
    to += EncodeRaw(shape, rows_.Select(layer, shape.stream), 0, shape.tokens, to, unused);
  return static_cast<uint64_t>(to - out);
}

Status DenseCoder::LoadRaw(const ProfileGroup& group, const SegmentShape& shape, Bytes stored,
                           uint32_t layer_begin, uint32_t layer_end) {
  const uint64_t expected = (group.layer_end - group.layer_begin) * shape.decoded_bytes();
  if (stored.size() != expected)
    return Corrupt(absl::StrCat("raw rows take ", stored.size(), " bytes, expected ", expected));
  kernels::HashCopy unused(nullptr);
  for (uint32_t layer = layer_begin; layer < layer_end; ++layer) {
    DecodeRaw(shape, stored.data() + (layer - group.layer_begin) * shape.decoded_bytes(),
              rows_.Select(layer, shape.stream), 0, shape.tokens, unused);
  }
  return OkStatus();
}

// Whatever the stream is: a table index is below kDenseTables, a state's low bits are below 2^kDenseBits, and
// words and literals are read only while there are some.
Status DenseCoder::DecodeStream(Quantiser quantiser, std::span<const DenseWalk::Token> tokens, Bytes literals,
                                Bytes bytes) {
  const DenseTables& tables = mode_.tables();
  const float* centres = tables.context().centres;
  kernels::RansStream stream;
  if (!kernels::RansOpen(bytes.data(), bytes.size(), kRansStatesMin, &stream))
    return Corrupt(absl::StrCat("a stream of ", bytes.size(), " bytes, or a state in it, is out of range"));
  uint8_t states[DenseWalk::kTokens] = {};
  scratch_.resize(tokens.size());
  for (size_t t = 0; t < tokens.size(); ++t) scratch_[t] = StepOf(TokenStep(step_, tokens[t]));
  for (size_t j = 0; j < classes_.size(); ++j) {
    float* values = values_.data() + j * DenseWalk::kTokens;
    for (size_t t = 0; t < tokens.size(); ++t) {
      const uint32_t state = states[t];
      const uint32_t table = TableOf(classes_[j], tokens[t].importance) + (state & 1);
      const uint32_t symbol =
          kernels::RansNext(tables.entries(table), kDenseBits, &stream, t % kRansStatesMin);
      uint32_t folded = symbol;
      if (symbol == tables.table(table).escape()) {
        folded = 0;
        for (uint32_t shift = 0;; shift += 7) {
          if (literals.empty() || shift > 14) return Corrupt("an escape without its value");
          folded |= (literals[0] & 127u) << shift;
          const bool last = literals[0] < 128;
          literals.remove_prefix(1);
          if (last) break;
        }
        if (folded > 2 * static_cast<uint32_t>(kernels::kTrellisMost))
          return Corrupt(absl::StrCat("an escape of ", folded));
      }
      const int32_t code = UnfoldCode(folded);
      const auto magnitude = static_cast<uint32_t>(std::abs(code));
      const float centre =
          centres[table * kernels::kTrellisCentres + std::min(magnitude, kernels::kTrellisCentres - 1)];
      const float value = (kernels::TrellisLevel(magnitude, state) + centre) * scratch_[t];
      values[t] = code < 0 ? -value : value;
      if (quantiser == Quantiser::kTrellis) states[t] = kernels::kTrellisNext[state][magnitude & 1];
    }
  }
  if (!literals.empty()) return Corrupt(absl::StrCat(literals.size(), " bytes of escapes are left"));
  if (!kernels::RansAtEnd(stream)) return Corrupt("a stream does not end with its symbols");
  return OkStatus();
}

Status DenseCoder::DecodeBlock(Quantiser quantiser, std::span<const DenseWalk::Token> tokens, Bytes* in) {
  uint32_t literal_bytes = 0, stream_bytes = 0;
  Bytes literals, stream;
  if (!Take(in, &literal_bytes) || !Take(in, &stream_bytes) || !TakePart(in, literal_bytes, &literals) ||
      !TakePart(in, stream_bytes, &stream)) {
    return Corrupt(
        absl::StrCat("a block of ", literal_bytes, " and ", stream_bytes, " bytes, left are ", in->size()));
  }
  return DecodeStream(quantiser, tokens, literals, stream);
}

Status DenseCoder::Decode(size_t index, const SegmentShape& shape, Bytes stored, uint32_t layer_begin,
                          uint32_t layer_end) {
  const ProfileGroup& group = mode_.group(index);
  uint8_t kind = 0, flags = 0;
  int16_t step = 0;
  if (!Take(&stored, &kind) || !Take(&stored, &flags) || !Take(&stored, &step))
    return Corrupt(absl::StrCat(stored.size(), " bytes, less than a front"));
  if (kind > static_cast<uint8_t>(Exempt::kFiner) || flags > (kHasImportance | kIsScalar) ||
      std::abs(step) > kStepMost)
    return Corrupt(absl::StrCat("kind ", kind, ", flags ", flags, ", step ", step));
  if (kind == kRawRows) return LoadRaw(group, shape, stored, layer_begin, layer_end);
  const auto exempt = static_cast<Exempt>(kind);
  const auto quantiser = (flags & kIsScalar) != 0 ? Quantiser::kScalar : Quantiser::kTrellis;
  const Split split(shape, exempt);
  Plan(index, step);
  KVT_RETURN_IF_ERROR(DecodeExempt(group, shape, split, exempt, layer_begin, layer_end, &stored));
  tokens_.assign(split.coded, {});
  for (uint64_t t = split.coded - split.fine; t < split.coded; ++t) tokens_[t].importance = kFiner;
  KVT_RETURN_IF_ERROR(ReadNumbers(&DenseWalk::Token::gain, kGainZero, -kGainMost, kGainMost, split, &stored));
  if ((flags & kHasImportance) != 0) {
    KVT_RETURN_IF_ERROR(ReadNumbers(&DenseWalk::Token::importance, kImportanceZero, kImportanceLeast,
                                    kImportanceMost, split, &stored));
  }
  const size_t width = (layer_end - layer_begin) * shape.channels();
  const float* basis = mode_.basis(index) + (layer_begin - group.layer_begin) * shape.channels();
  for (uint64_t token = 0; token < split.coded; token += DenseWalk::kTokens) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(DenseWalk::kTokens, split.coded - token));
    KVT_RETURN_IF_ERROR(DecodeBlock(quantiser, {tokens_.data() + token, count}, &stored));
    if (!classes_.empty()) {
      blas::Multiply(count, width, classes_.size(), {values_.data(), DenseWalk::kTokens, /*transposed=*/true},
                     {basis, group.width()}, tile_.data(), width);
    } else {
      std::fill_n(tile_.begin(), count * width, 0.0f);
    }
    rows_.Store(group, shape, token, count, layer_begin, layer_end, tile_.data());
  }
  if (!stored.empty()) return Corrupt(absl::StrCat(stored.size(), " bytes are left"));
  return OkStatus();
}

}  // namespace kvt
