#include "codec/lossless/layout.h"

namespace kvt::lossless {

Turns TurnsOf(const SegmentShape& shape) {
  Turns turns{{}, {0}};
  if (shape.turns == nullptr || shape.channels() > kTurnedChannelsMax) return turns;
  turns.of.assign(shape.dim, 0);
  for (uint32_t e = 0; e < shape.dim; ++e) {
    const uint32_t step = shape.turns[e];
    if (step == 0) continue;
    auto at = std::find(turns.steps.begin(), turns.steps.end(), step);
    if (at == turns.steps.end()) {
      if (turns.steps.size() == kTurnsMax) return {{}, {0}};
      at = turns.steps.insert(at, step);
    }
    turns.of[e] = static_cast<uint8_t>(at - turns.steps.begin() + 1);
  }
  return turns;
}

void TurnOrder::Sort(const Turns& turns, uint64_t first, size_t tokens) {
  if (first_ == first && tokens_ == tokens && steps_ == turns.steps) return;
  first_ = first;
  tokens_ = tokens;
  steps_ = turns.steps;
  starts_.assign(turns.steps.size() * (kBins + 1), 0);
  order_.resize(turns.steps.size() * tokens);
  for (size_t turn = 0; turn < turns.steps.size(); ++turn) {
    const uint32_t step = turns.steps[turn];
    uint16_t* starts = starts_.data() + turn * (kBins + 1);
    uint16_t* order = order_.data() + turn * tokens;
    for (size_t t = 0; t < tokens; ++t) ++starts[BinOf(step, first + t) + 1];
    uint16_t next[kBins];
    for (uint32_t bin = 0; bin < kBins; ++bin) {
      next[bin] = starts[bin];
      starts[bin + 1] = static_cast<uint16_t>(starts[bin + 1] + starts[bin]);
    }
    for (size_t t = 0; t < tokens; ++t) order[next[BinOf(step, first + t)]++] = static_cast<uint16_t>(t);
  }
}

void PlaneItems::Set(const Turns& turns, size_t channels, bool turned) {
  turned_ = turned;
  first_.assign(1, 0);
  channel_.clear();
  bin_.clear();
  for (size_t c = 0; c < channels; ++c) {
    const uint32_t bins = turned && turns.Of(c) != 0 ? kBins : 1;
    for (uint32_t bin = 0; bin < bins; ++bin) {
      channel_.push_back(static_cast<uint16_t>(c));
      bin_.push_back(static_cast<uint8_t>(bin));
    }
    first_.push_back(static_cast<uint32_t>(channel_.size()));
  }
  place_.resize(size());
}

void PlaneItems::SetClasses(const uint8_t* classes, uint32_t count) {
  class_.assign(classes, classes + size());
  class_begin_.assign(count + 1, 0);
  for (const uint8_t k : class_) ++class_begin_[k + 1];
  for (uint32_t k = 0; k < count; ++k) class_begin_[k + 1] += class_begin_[k];
  std::vector<uint32_t> next(class_begin_.begin(), class_begin_.end() - 1);
  sorted_.resize(size());
  for (uint32_t item = 0; item < size(); ++item) sorted_[next[class_[item]]++] = item;
}

uint64_t PlaneItems::Tokens(const Turns& turns, const TurnOrder& order, size_t item) const {
  if (!turned_) return order.tokens();
  const uint32_t turn = turns.Of(channel_[item]);
  if (turn == 0) return order.tokens();
  const uint16_t* starts = order.starts(turn);
  return static_cast<uint64_t>(starts[bin_[item] + 1] - starts[bin_[item]]);
}

void PlaneItems::Place(const Turns& turns, const TurnOrder& order, std::vector<uint64_t>* begins) {
  const size_t classes = class_begin_.size() - 1;
  begins->resize(classes + 1);
  uint64_t at = 0;
  for (size_t k = 0; k < classes; ++k) {
    (*begins)[k] = at;
    // Raw bytes are counted from 0.
    const uint64_t base = k + 1 == classes ? at : 0;
    for (uint32_t i = class_begin_[k]; i < class_begin_[k + 1]; ++i) {
      const uint32_t item = sorted_[i];
      place_[item] = at - base;
      at += Tokens(turns, order, item);
    }
  }
  (*begins)[classes] = at;
}

}  // namespace kvt::lossless
