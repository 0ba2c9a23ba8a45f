#include "cpu/transform_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/transform_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/lossy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE void TurnPair(float* a, float* b, float cosine, float sine) {
  const float x = *a, y = *b;
  *a = x * cosine - y * sine;
  *b = x * sine + y * cosine;
}

// `row` has `heads` heads in a row; the cosines and sines are those of its token.
void TurnRow(const Turns& turns, size_t heads, size_t dim, const float* cosines, const float* sines,
             float* row) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = turns.pairs / lanes * lanes;
  for (size_t h = 0; h < heads; ++h) {
    float* head = row + h * dim + turns.offset;
    for (size_t i = 0; i < whole; i += lanes) {
      const auto cosine = hn::LoadU(d, cosines + i), sine = hn::LoadU(d, sines + i);
      FloatVec x, y;
      if (turns.interleaved) {
        hn::LoadInterleaved2(d, head + 2 * i, x, y);
      } else {
        x = hn::LoadU(d, head + i);
        y = hn::LoadU(d, head + turns.pairs + i);
      }
      const auto turned_x = hn::Sub(hn::Mul(x, cosine), hn::Mul(y, sine));
      const auto turned_y = hn::Add(hn::Mul(x, sine), hn::Mul(y, cosine));
      if (turns.interleaved) {
        hn::StoreInterleaved2(turned_x, turned_y, d, head + 2 * i);
      } else {
        hn::StoreU(turned_x, d, head + i);
        hn::StoreU(turned_y, d, head + turns.pairs + i);
      }
    }
    for (size_t i = whole; i < turns.pairs; ++i) {
      float* first = turns.interleaved ? head + 2 * i : head + i;
      TurnPair(first, first + (turns.interleaved ? 1 : turns.pairs), cosines[i], sines[i]);
    }
  }
}

template <typename T>
void LoadRow(const void* from, size_t channels, float* to, uint64_t* nonfinite) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = channels / lanes * lanes;
  for (size_t c = 0; c < whole; c += lanes) hn::StoreU(AdmitVec(LoadRow<T>(from, c), nonfinite), d, to + c);
  for (size_t c = whole; c < channels; ++c) to[c] = Admit(LoadElement(T::kElement, from, c), nonfinite);
}

void CentreRow(const float* mean, float amplitude, size_t channels, float* row) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = channels / lanes * lanes;
  const auto factor = hn::Set(d, amplitude);
  for (size_t c = 0; c < whole; c += lanes) {
    hn::StoreU(hn::Mul(hn::Sub(hn::LoadU(d, row + c), hn::LoadU(d, mean + c)), factor), d, row + c);
  }
  for (size_t c = whole; c < channels; ++c) row[c] = (row[c] - mean[c]) * amplitude;
}

void UncentreRow(const float* mean, float factor, size_t channels, float* row) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = channels / lanes * lanes;
  const auto scale = hn::Set(d, factor);
  for (size_t c = 0; c < whole; c += lanes)
    hn::StoreU(hn::Add(hn::Mul(hn::LoadU(d, row + c), scale), hn::LoadU(d, mean + c)), d, row + c);
  for (size_t c = whole; c < channels; ++c) row[c] = row[c] * factor + mean[c];
}

template <typename T>
void StoreFloats(const float* from, size_t channels, void* to) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = channels / lanes * lanes;
  for (size_t c = 0; c < whole; c += lanes) StoreRow<T>(SaturateVec(hn::LoadU(d, from + c)), to, c);
  for (size_t c = whole; c < channels; ++c) StoreElement(T::kElement, Saturate(from[c]), to, c);
}

void Load(const RowTile& shape, const Turns& turns, const void* const* rows, float amplitude, float* tile,
          uint64_t* nonfinite) {
  const size_t channels = shape.heads * shape.dim;
  WithElement(shape.element, [&](auto type) {
    for (size_t t = 0; t < shape.count; ++t) {
      float* row = tile + t * shape.stride;
      LoadRow<decltype(type)>(rows[t], channels, row, nonfinite);
      if (turns.cosines != nullptr) {
        const size_t at = t * turns.pairs;
        TurnRow(turns, shape.heads, shape.dim, turns.cosines + at, turns.sines + at, row);
      }
      CentreRow(shape.mean, amplitude, channels, row);
    }
  });
}

void Store(const RowTile& shape, const Turns& turns, float* tile, float factor, void* const* rows) {
  const size_t channels = shape.heads * shape.dim;
  WithElement(shape.element, [&](auto type) {
    for (size_t t = 0; t < shape.count; ++t) {
      float* row = tile + t * shape.stride;
      UncentreRow(shape.mean, factor, channels, row);
      if (turns.cosines != nullptr) {
        const size_t at = t * turns.pairs;
        TurnRow(turns, shape.heads, shape.dim, turns.cosines + at, turns.sines + at, row);
      }
      StoreFloats<decltype(type)>(row, channels, rows[t]);
    }
  });
}

void FromHalves(const uint8_t* halves, size_t count, float* floats) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  for (size_t i = 0; i < whole; i += lanes) hn::StoreU(LoadRow<F16>(halves, i), d, floats + i);
  for (size_t i = whole; i < count; ++i) floats[i] = LoadElement(Element::kF16, halves, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(Load);
HWY_EXPORT(Store);
HWY_EXPORT(FromHalves);

void LoadRows(const RowTile& shape, const Turns& turns, const void* const* rows, float amplitude, float* tile,
              uint64_t* nonfinite) {
  HWY_DYNAMIC_DISPATCH(Load)(shape, turns, rows, amplitude, tile, nonfinite);
}

void StoreRows(const RowTile& shape, const Turns& turns, float* tile, float factor, void* const* rows) {
  HWY_DYNAMIC_DISPATCH(Store)(shape, turns, tile, factor, rows);
}

void HalvesToFloats(const uint8_t* halves, size_t count, float* floats) {
  HWY_DYNAMIC_DISPATCH(FromHalves)(halves, count, floats);
}

}  // namespace kvt::kernels
#endif
