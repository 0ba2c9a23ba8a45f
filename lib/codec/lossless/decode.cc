#include <cstring>

#include "codec/entropy/entropy.h"
#include "codec/lossless/chunk.h"
#include "cpu/rans.h"

namespace kvt::lossless {
namespace {

using kernels::kRansStatesMax;
using kernels::kRansStatesMin;

Status Corrupt(absl::string_view text) {
  return Error(KVT_ERR_CORRUPT, absl::StrCat("lossless chunk: ", text));
}

Status Ends(absl::string_view where) { return Corrupt(absl::StrCat("it ends in ", where)); }

}  // namespace

Status ChunkDecoder::ReadTurns(Bytes* coded) {
  const size_t turns = (*coded)[0];
  *coded = coded->subspan(1);
  turns_.steps.clear();
  turns_.of.assign(1, 0);
  if (turns == 0) return OkStatus();
  if (coded->size() < turns * sizeof(uint32_t) + sizeof(uint16_t)) return Ends("its turns");
  for (size_t i = 0; i < turns; ++i)
    turns_.steps.push_back(LoadLe<uint32_t>(coded->data() + i * sizeof(uint32_t)));
  *coded = coded->subspan(turns * sizeof(uint32_t));
  const size_t period = LoadLe<uint16_t>(coded->data());
  *coded = coded->subspan(sizeof(uint16_t));
  if (shape_.channels > kTurnedChannelsMax || period == 0 || period > shape_.channels ||
      coded->size() < period) {
    return Corrupt(absl::StrCat("turns repeat after ", period, " of ", shape_.channels, " channels, with ",
                                coded->size(), " bytes left"));
  }
  turns_.of.assign(coded->begin(), coded->begin() + static_cast<int64_t>(period));
  *coded = coded->subspan(period);
  for (const uint8_t turn : turns_.of)
    if (turn > turns) return Corrupt(absl::StrCat("turn ", turn, " of ", turns));
  return OkStatus();
}

Status ChunkDecoder::ReadTables(Bytes* coded) {
  const size_t width = shape_.planes.width;
  if (coded->size() < 2 * width) return Ends("its planes");
  for (size_t p = 0; p < width; ++p) {
    Plane& plane = planes_[p];
    plane.classes = (*coded)[2 * p];
    const uint32_t turned = (*coded)[2 * p + 1];
    if (plane.classes > kClassesMax || turned > 1 || (turned == 1 && turns_.steps.empty())) {
      return Corrupt(absl::StrCat("plane ", p, " has ", plane.classes, " classes and ", turned,
                                  " for turned, ", "with ", turns_.steps.size(), " turns"));
    }
    plane.turned = turned == 1;
  }
  BitReader reader(coded->subspan(2 * width));
  for (size_t p = 0; p < width; ++p) {
    Plane& plane = planes_[p];
    plane.items.Set(turns_, shape_.channels, plane.turned);
    plane.tables.clear();
    if (plane.classes == 0) continue;
    KVT_ASSIGN_OR_RETURN(plane.numbers, SymbolTable::Read(&reader));
    const size_t stride = size_t{1} << kernels::kRansBitsMax;
    plane.entries.resize((plane.classes + 1) * stride);
    for (uint32_t k = 0; k <= plane.classes; ++k) {
      uint32_t* entries = plane.entries.data() + k * stride;
      SymbolTable table = plane.numbers;
      if (k != plane.classes) {
        KVT_ASSIGN_OR_RETURN(table, SymbolTable::Read(&reader));
      }
      if (table.escape() != SymbolTable::kNoEscape)
        return Corrupt(absl::StrCat("plane ", p, ": a table has escape ", table.escape(), ", expected none"));
      table.FillEntries(entries);
      plane.tables.push_back({table.bits(), entries});
    }
  }
  *coded = coded->subspan(2 * width + reader.used());
  return OkStatus();
}

Status ChunkDecoder::ReadClasses() {
  for (size_t p = 0; p < shape_.planes.width; ++p) {
    Plane& plane = planes_[p];
    if (plane.classes == 0) continue;
    numbers_.resize(plane.items.size());
    kernels::RansDecode(plane.tables.back(), &stream_, numbers_.data(), numbers_.size());
    for (const uint8_t k : numbers_)
      if (k > plane.classes) return Corrupt(absl::StrCat("plane ", p, ": class ", k, " of ", plane.classes));
    plane.items.SetClasses(numbers_.data(), plane.classes + 1);
  }
  return OkStatus();
}

Status ChunkDecoder::Open(const ChunkShape& shape, Bytes coded) {
  shape_ = shape;
  done_ = 0;
  if (coded.size() < 2) return Ends("its first bytes");
  const uint32_t states = coded[0] <= 2 ? kRansStatesMin << coded[0] : 0;
  if (states == 0 || states > kRansStatesMax)
    return Corrupt(absl::StrCat("number ", coded[0], " for its states"));
  coded = coded.subspan(1);
  KVT_RETURN_IF_ERROR(ReadTurns(&coded));
  KVT_RETURN_IF_ERROR(ReadTables(&coded));
  if (coded.size() < sizeof(uint32_t)) return Ends("the length of its raw bytes");
  const uint64_t raw = LoadLe<uint32_t>(coded.data());
  coded = coded.subspan(sizeof(uint32_t));
  if (raw > coded.size()) return Corrupt(absl::StrCat(raw, " raw bytes in ", coded.size()));
  raw_ = coded.first(raw);
  coded = coded.subspan(raw);
  if (!kernels::RansOpen(coded.data(), coded.size(), states, &stream_))
    return Corrupt(absl::StrCat("a stream of ", coded.size(), " bytes, or a state in it, is out of range"));
  KVT_RETURN_IF_ERROR(ReadClasses());
  const size_t width = shape.planes.width;
  const size_t block = std::min<uint64_t>(BlockTokens(shape.channels), shape.tokens) * shape.channels;
  if (work_.size() < 2 * width * block) work_.resize(2 * width * block);
  for (size_t p = 0; p < width; ++p) {
    planes_[p].coded = work_.data() + 2 * p * block;
    planes_[p].straight = planes_[p].coded + block;
  }
  pointers_.resize(width * shape.channels);
  return OkStatus();
}

// The bytes of a channel in the order of tokens.
void ChunkDecoder::Straighten(const TurnOrder& order, const Plane& plane, size_t channel, const uint8_t* raw,
                              uint8_t* to) const {
  const uint32_t turn = turns_.Of(channel);
  const uint16_t* starts = order.starts(turn);
  const uint16_t* tokens = order.tokens(turn);
  for (uint32_t bin = 0; bin < kBins; ++bin) {
    const size_t item = plane.items.first(channel) + bin;
    const uint8_t* from = (plane.items.raw(item) ? raw : plane.coded) + plane.items.place(item);
    for (size_t i = starts[bin]; i < starts[bin + 1]; ++i) to[tokens[i]] = *from++;
  }
}

// Places of items are below the sums that are checked here against the raw bytes and fit the block's memory,
// since all items of a block together have its tokens x channels bytes.
Status ChunkDecoder::NextPlane(const TurnOrder& order, size_t number, size_t tokens) {
  Plane& plane = planes_[number];
  const uint8_t** pointers = pointers_.data() + number * shape_.channels;
  const uint8_t* raw = raw_.data();
  uint64_t raw_bytes = tokens * shape_.channels;
  if (plane.classes != 0) {
    plane.items.Place(turns_, order, &begins_);
    raw_bytes = begins_[plane.classes + 1] - begins_[plane.classes];
  }
  if (raw_bytes > raw_.size())
    return Corrupt(
        absl::StrCat("plane ", number, ": ", raw_.size(), " raw bytes left, ", raw_bytes, " needed"));
  raw_ = raw_.subspan(raw_bytes);
  if (plane.classes == 0) {
    for (size_t c = 0; c < shape_.channels; ++c) pointers[c] = raw + c * tokens;
    return OkStatus();
  }
  for (uint32_t k = 0; k < plane.classes; ++k) {
    kernels::RansDecode(plane.tables[k], &stream_, plane.coded + begins_[k], begins_[k + 1] - begins_[k]);
  }
  for (size_t c = 0; c < shape_.channels; ++c) {
    if (plane.items.count(c) == 1) {
      const size_t item = plane.items.first(c);
      pointers[c] = (plane.items.raw(item) ? raw : plane.coded) + plane.items.place(item);
      continue;
    }
    uint8_t* to = plane.straight + c * tokens;
    Straighten(order, plane, c, raw, to);
    pointers[c] = to;
  }
  return OkStatus();
}

Status ChunkDecoder::Next(size_t tokens) {
  const size_t block = done_ / BlockTokens(shape_.channels);
  if (orders_.size() <= block) orders_.resize(block + 1);
  TurnOrder& order = orders_[block];
  order.Sort(turns_, done_, tokens);
  done_ += tokens;
  for (size_t p = 0; p < shape_.planes.width; ++p) KVT_RETURN_IF_ERROR(NextPlane(order, p, tokens));
  return OkStatus();
}

Status ChunkDecoder::Close() const {
  if (!raw_.empty()) return Corrupt(absl::StrCat(raw_.size(), " raw bytes too many"));
  if (!kernels::RansAtEnd(stream_)) return Corrupt("its stream does not end with its symbols");
  return OkStatus();
}

}  // namespace kvt::lossless
