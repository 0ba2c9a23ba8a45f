#include "codec/transform/calibrator.h"

#include <algorithm>

#include "codec/codec.h"
#include "codec/rows.h"
#include "codec/transform/blas.h"
#include "codec/transform/turn_table.h"
#include "common/lossy.h"
#include "cpu/transform_rows.h"

namespace kvt {
namespace {

using kernels::Element;

constexpr size_t kTileTokens = 256;
// A covariance of this many columns takes 1 GiB.
constexpr uint64_t kWidthMax = 16384;

Status CheckRange(absl::string_view name, uint32_t most, uint32_t* begin, uint32_t* end) {
  if (*begin == 0 && *end == 0) *end = most;
  if (*begin < *end && *end <= most) return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("calibration: ", name, " [", *begin, ", ", *end,
                                                      ") are none, or beyond the model's ", most));
}

}  // namespace

Status Calibrator::CheckOptions(const Model& model, CalibrationOptions* options) {
  KVT_RETURN_IF_ERROR(CheckRange("layers", model.layers(), &options->layer_begin, &options->layer_end));
  KVT_RETURN_IF_ERROR(CheckRange("heads", model.kv_heads(), &options->head_begin, &options->head_end));
  const uint32_t layers = options->layer_end - options->layer_begin;
  if (options->group_layers == 0) options->group_layers = (layers + 2) / 3;
  if (options->group_layers > layers) {
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("calibration: group_layers is ",
                                                        options->group_layers, ", the layers are ", layers));
  }
  if (options->ratio_min < kRatioMin || options->ratio_min > kRatioMax) {
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("calibration: ratio_min is ", options->ratio_min,
                                                        ", expected ", kRatioMin, " to ", kRatioMax));
  }
  if (model.element() == KVT_ELEMENT_FP8_E4M3 || model.element() == KVT_ELEMENT_FP8_E5M2) {
    return Error(KVT_ERR_UNSUPPORTED,
                 absl::StrCat("calibration: the model's rows are ", ElementName(model.element())));
  }
  for (uint32_t stream = 0; stream < model.streams(); ++stream) {
    const uint64_t width =
        uint64_t{options->group_layers} * (options->head_end - options->head_begin) * model.head_dim(stream);
    if (width > kWidthMax) {
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("calibration: group_layers ", options->group_layers, " gives rows of ", width,
                                " elements in stream ", stream, ", the most are ", kWidthMax));
    }
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<Calibrator>> Calibrator::Create(std::shared_ptr<const Model> model,
                                                         const CalibrationOptions& options) {
  CalibrationOptions checked = options;
  KVT_RETURN_IF_ERROR(CheckOptions(*model, &checked));
  return std::shared_ptr<Calibrator>(new Calibrator(std::move(model), checked));
}

Calibrator::Calibrator(std::shared_ptr<const Model> model, const CalibrationOptions& options)
    : model_(std::move(model)), options_(options), sample_(0) {
  size_t column = 0;
  MutexLock lock(&mu_);
  for (uint32_t layer = options_.layer_begin; layer < options_.layer_end; layer += options_.group_layers) {
    for (uint32_t stream = 0; stream < model_->streams(); ++stream) {
      Sums sums;
      sums.stream = stream;
      sums.layer_begin = layer;
      sums.layer_end = std::min(options_.layer_end, layer + options_.group_layers);
      sums.channels = size_t{options_.head_end - options_.head_begin} * model_->head_dim(stream);
      sums.sample_column = column;
      const size_t width = (sums.layer_end - sums.layer_begin) * sums.channels;
      sums.shift.assign(width, 0.0f);
      sums.sum.assign(width, 0.0);
      sums.outer.assign(width * width, 0.0f);
      column += width;
      sums_.push_back(std::move(sums));
    }
  }
  sample_ = RowSample(column);
  const size_t layers = options_.layer_end - options_.layer_begin;
  for (uint32_t stream = 0; stream < model_->streams(); ++stream) {
    metrics_[stream].resize(layers * (options_.head_end - options_.head_begin));
    weights_[stream].resize(layers);
  }
}

CalibrationInfo Calibrator::Info() const {
  MutexLock lock(&mu_);
  return info_;
}

Status Calibrator::CheckView(const View& view, uint64_t begin, uint64_t count) const {
  if (begin > view.tokens() || count > view.tokens() - begin || count == 0) {
    return Error(KVT_ERR_OUT_OF_RANGE, absl::StrCat("calibration: token_begin ", begin, " and token_count ",
                                                    count, ", the view holds ", view.tokens(), " tokens"));
  }
  if (view.layer_begin() > options_.layer_begin || view.layer_end() < options_.layer_end ||
      view.head_begin() != options_.head_begin || view.head_end() != options_.head_end) {
    return Error(KVT_ERR_MISMATCH,
                 absl::StrCat("calibration: the view has layers [", view.layer_begin(), ", ",
                              view.layer_end(), ") and heads [", view.head_begin(), ", ", view.head_end(),
                              "), expected [", options_.layer_begin, ", ", options_.layer_end, ") and [",
                              options_.head_begin, ", ", options_.head_end, ")"));
  }
  if (view.element() == KVT_ELEMENT_FP8_E4M3 || view.element() == KVT_ELEMENT_FP8_E5M2) {
    return Error(KVT_ERR_UNSUPPORTED,
                 absl::StrCat("calibration: the view's rows are ", ElementName(view.element())));
  }
  return OkStatus();
}

void Calibrator::LoadTile(const View& view, const Sums& sums, uint64_t begin, size_t count, const float* mean,
                          uint64_t* nonfinite) {
  const TurnTable turns(model_->rope(), view.first_position() + begin, count, /*undo=*/true);
  RowWindow rows(view, *model_);
  tile_.resize(kTileTokens * sums.width());
  for (uint32_t layer = sums.layer_begin; layer < sums.layer_end; ++layer) {
    const size_t column = (layer - sums.layer_begin) * sums.channels;
    rows.Select(layer, sums.stream, begin);
    const kernels::RowTile shape{
        Element{view.element()},       count,        options_.head_end - options_.head_begin,
        model_->head_dim(sums.stream), sums.width(), mean + column};
    kernels::LoadRows(shape, turns.From(sums.stream, 0), rows.Read(0, count), 1.0f, tile_.data() + column,
                      nonfinite);
  }
}

void Calibrator::AddTile(const View& view, uint64_t begin, size_t count, const int8_t* importance) {
  std::vector<uint64_t> slots(count);
  for (size_t t = 0; t < count; ++t) {
    slots[t] = sample_.NextSlot();
    if (slots[t] != RowSample::kNone)
      sample_.importance_[slots[t]] = importance == nullptr ? int8_t{0} : importance[t];
  }
  for (Sums& sums : sums_) {
    const size_t width = sums.width();
    if (info_.tokens == 0) {
      // The first tile's mean is near enough to the mean of all.
      uint64_t counted_below = 0;
      LoadTile(view, sums, begin, count, sums.shift.data(), &counted_below);
      std::vector<double> total(width, 0.0);
      for (size_t t = 0; t < count; ++t) {
        for (size_t c = 0; c < width; ++c) total[c] += double{tile_[t * width + c]};
      }
      for (size_t c = 0; c < width; ++c)
        sums.shift[c] = static_cast<float>(total[c] / static_cast<double>(count));
    }
    LoadTile(view, sums, begin, count, sums.shift.data(), &info_.nonfinite);
    blas::AddOuter(width, count, tile_.data(), width, sums.outer.data());
    for (size_t t = 0; t < count; ++t) {
      const float* row = tile_.data() + t * width;
      for (size_t c = 0; c < width; ++c) sums.sum[c] += double{row[c]};
      if (slots[t] == RowSample::kNone) continue;
      uint16_t* kept = sample_.Row(slots[t]) + sums.sample_column;
      // Relative to the shift, a row may be beyond what an f16 holds.
      for (size_t c = 0; c < width; ++c) kept[c] = kernels::F32ToF16(kernels::Clamp(row[c]));
    }
  }
  info_.tokens += count;
}

Status Calibrator::Add(const View& view, uint64_t begin, uint64_t count, const int8_t* importance) {
  KVT_RETURN_IF_ERROR(CheckView(view, begin, count));
  KVT_RETURN_IF_ERROR(CheckImportance("importance", importance, count));
  const uint64_t end = begin + count;
  const uint64_t exempt = kExemptPositions - std::min(kExemptPositions, view.first_position() + begin);
  MutexLock lock(&mu_);
  finished_.clear();
  for (uint64_t token = begin + std::min(exempt, count); token < end; token += kTileTokens)
    AddTile(view, token, static_cast<size_t>(std::min<uint64_t>(kTileTokens, end - token)),
            importance == nullptr ? nullptr : importance + (token - begin));
  ++info_.documents;
  return OkStatus();
}

StatusOr<std::string> Calibrator::Finish() const {
  MutexLock lock(&mu_);
  if (info_.tokens < kTokensMin) {
    return Error(KVT_ERR_OUT_OF_RANGE,
                 absl::StrCat("calibration: ", info_.tokens, " tokens, the least are ", kTokensMin));
  }
  if (finished_.empty()) {
    KVT_ASSIGN_OR_RETURN(finished_, MakeProfile());
  }
  return finished_;
}

}  // namespace kvt
