#include "kvartet/calibration_state.h"

#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <string_view>

#include "kvartet/files.h"

namespace kvt::cli {
namespace {

// The file: magic, identity, Head, the metric, the weights, then what kvt_calibration_save gave.
constexpr std::string_view kMagic = "kvartet calibration 2\n";

struct Head {
  uint64_t metric = 0, weights = 0;  // bytes
  uint64_t checksum = 0;             // of both
};

ByteSpan BytesOf(const std::vector<float>& floats) {
  return {reinterpret_cast<const uint8_t*>(floats.data()), floats.size() * sizeof(float)};
}

uint64_t Checksum(ByteSpan metric, ByteSpan weights) {
  const uLong begun = crc32_z(0, metric.data(), metric.size());
  return weights.empty() ? begun : crc32_z(begun, weights.data(), weights.size());
}

// Takes the first `size` bytes off, or nothing when there are not so many.
std::optional<ByteSpan> Cut(ByteSpan* bytes, uint64_t size) {
  if (size > bytes->size()) return std::nullopt;
  const ByteSpan first = bytes->first(size);
  *bytes = bytes->subspan(size);
  return first;
}

// Takes the sums off; nothing when they are damaged.
std::optional<CalibrationSums> CutSums(ByteSpan* bytes) {
  const std::optional<ByteSpan> raw = Cut(bytes, sizeof(Head));
  if (!raw) return std::nullopt;
  Head head;
  std::memcpy(&head, raw->data(), sizeof head);
  const std::optional<ByteSpan> metric = Cut(bytes, head.metric);
  const std::optional<ByteSpan> weights = metric ? Cut(bytes, head.weights) : std::nullopt;
  if (!weights || weights->size() % sizeof(float) != 0 || head.checksum != Checksum(*metric, *weights))
    return std::nullopt;
  CalibrationSums sums;
  sums.metric.assign(metric->begin(), metric->end());
  sums.weights.resize(weights->size() / sizeof(float));
  std::memcpy(sums.weights.data(), weights->data(), weights->size());
  return sums;
}

}  // namespace

CalibrationState::CalibrationState(const Model& model, const KeyBytes& identity, const std::string& path)
    : model_(model), identity_(identity), path_(path) {
  CheckWritable(path);
}

void CalibrationState::Save(const Calibration& calibration, const CalibrationSums& sums) {
  CopyBytes([&](uint8_t* buf, size_t cap,
                size_t* needed) { return kvt_calibration_save(calibration.get(), buf, cap, needed); },
            "kvt_calibration_save", &buffer_);
  const ByteSpan weights = BytesOf(sums.weights);
  const Head head{sums.metric.size(), weights.size(), Checksum(sums.metric, weights)};
  WriteFile(path_,
            {ByteSpan(reinterpret_cast<const uint8_t*>(kMagic.data()), kMagic.size()), identity_,
             ByteSpan(reinterpret_cast<const uint8_t*>(&head), sizeof head), sums.metric, weights, buffer_});
}

std::optional<RestoredCalibration> CalibrationState::Restore() const {
  std::error_code code;
  if (!std::filesystem::exists(path_, code)) return std::nullopt;
  const std::vector<uint8_t> file = ReadFile(path_);
  ByteSpan bytes = file;
  const auto failure = [&](const std::string& what, kvt_status_t status = KVT_ERR_CORRUPT) {
    return Failure(path_ + ": " + what + "; give another path, or delete it", status);
  };
  const std::optional<ByteSpan> magic = Cut(&bytes, kMagic.size());
  const std::optional<ByteSpan> identity = magic ? Cut(&bytes, identity_.size()) : std::nullopt;
  if (!identity || std::memcmp(magic->data(), kMagic.data(), kMagic.size()) != 0)
    throw failure("is not the state of a calibration");
  std::optional<CalibrationSums> sums = CutSums(&bytes);
  if (!sums) throw failure("is damaged");
  RestoredCalibration restored;
  restored.sums = std::move(*sums);
  try {
    Check(kvt_calibration_restore(model_.get(), bytes.data(), bytes.size(), restored.calibration.out()),
          "kvt_calibration_restore");
  } catch (const Failure& inner) {
    const std::string reason =
        inner.status == KVT_ERR_MISMATCH ? "is the state of another model's calibration" : "is damaged";
    throw failure(reason + " (" + inner.what() + ")", inner.status);
  }
  if (std::memcmp(identity->data(), identity_.data(), identity_.size()) != 0) {
    throw Failure(path_ +
                  ": is the state of a calibration with other texts or settings; give the same ones again, "
                  "another path, or delete it");
  }
  return restored;
}

}  // namespace kvt::cli
