// Saving and restoring a calibration: magic, version, the model's fingerprint, the options, all state in a
// fixed order, and a checksum over everything before it.
#include <cmath>

#include "codec/codec.h"
#include "codec/transform/calibrator.h"
#include "cpu/hash_copy.h"

namespace kvt {
namespace {

constexpr absl::string_view kMagic = "KVTCALIB";
constexpr uint32_t kVersion = 2;

Status Corrupt(absl::string_view text) {
  return Error(KVT_ERR_CORRUPT, absl::StrCat("saved calibration: ", text));
}

struct Writer {
  std::string out;
  void Bytes(const void* data, size_t size) { out.append(static_cast<const char*>(data), size); }
  template <typename T>
  bool Resize(std::vector<T>*, size_t) {
    return true;
  }
};

// Reads as long as there are bytes; `ok` says whether there were enough.
struct Reader {
  kvt::Bytes in;
  bool ok = true;
  void Bytes(void* data, size_t size) {
    ok = ok && in.size() >= size;
    if (!ok || size == 0) return;
    std::memcpy(data, in.data(), size);
    in.remove_prefix(size);
  }
  template <typename T>
  bool Resize(std::vector<T>* values, size_t size) {
    ok = ok && in.size() / sizeof(T) >= size;
    if (ok) values->resize(size);
    return ok;
  }
};

template <typename Archive, typename T>
void Value(Archive* archive, T* value) {
  archive->Bytes(value, sizeof *value);
}

template <typename Archive, typename T>
void Values(Archive* archive, std::vector<T>* values) {
  archive->Bytes(values->data(), values->size() * sizeof(T));
}

// A row of f16 values has less, RoPE undone; and nothing that is computed with as much overflows.
constexpr double kRowMax = 1e9;
// More tokens than any calibration sees; counts do not overflow from there.
constexpr uint64_t kTokensMax = uint64_t{1} << 48;

template <typename T>
bool AllWithin(const std::vector<T>& values, double most) {
  for (const T value : values) {
    if (!(std::fabs(double{value}) <= most)) return false;
  }
  return true;
}

bool AllFinite(const std::vector<uint16_t>& halves) {
  for (const uint16_t half : halves) {
    if ((half & 0x7c00u) == 0x7c00u) return false;
  }
  return true;
}

}  // namespace

bool Calibrator::IsPlausible(const Sums& sums, uint64_t tokens) {
  // A little more for what floats round.
  const double count = 1.01 * static_cast<double>(tokens);
  if (!AllWithin(sums.shift, kRowMax) || !AllWithin(sums.sum, count * kRowMax) ||
      !AllWithin(sums.outer, count * kRowMax * kRowMax)) {
    return false;
  }
  // They are sums of squares.
  for (size_t c = 0; c < sums.width(); ++c) {
    if (sums.outer[c * sums.width() + c] < 0) return false;
  }
  return true;
}

template <typename Archive>
void Calibrator::Transfer(Archive* archive) {
  Value(archive, &info_.tokens);
  Value(archive, &info_.nonfinite);
  Value(archive, &info_.documents);
  Value(archive, &sample_.seen_);
  Value(archive, &sample_.random_);
  const uint64_t rows = std::min(sample_.seen_, RowSample::kRows);
  if (archive->Resize(&sample_.halves_, rows * sample_.columns())) Values(archive, &sample_.halves_);
  if (archive->Resize(&sample_.importance_, rows)) Values(archive, &sample_.importance_);
  for (Sums& sums : sums_) {
    Values(archive, &sums.shift);
    Values(archive, &sums.sum);
    for (size_t row = 0; row < sums.width(); ++row)
      archive->Bytes(sums.outer.data() + row * sums.width(), (row + 1) * sizeof(float));
  }
}

std::string Calibrator::Save() const {
  MutexLock lock(&mu_);
  Writer writer;
  writer.Bytes(kMagic.data(), kMagic.size());
  AppendLe(&writer.out, kVersion);
  writer.Bytes(model_->fingerprint().data(), model_->fingerprint().size());
  for (const uint32_t option : {options_.group_layers, options_.ratio_min, options_.layer_begin,
                                options_.layer_end, options_.head_begin, options_.head_end}) {
    AppendLe(&writer.out, option);
  }
  // Writing changes nothing.
  const_cast<Calibrator*>(this)->Transfer(&writer);
  AppendLe(&writer.out, kernels::Hash(writer.out.data(), writer.out.size()));
  return std::move(writer.out);
}

StatusOr<std::shared_ptr<Calibrator>> Calibrator::Restore(std::shared_ptr<const Model> model, Bytes saved) {
  constexpr size_t kFront = 8 + sizeof(uint32_t) + KVT_FINGERPRINT_BYTES + 6 * sizeof(uint32_t);
  if (saved.size() < kFront + sizeof(uint64_t) || AsText(saved.first(kMagic.size())) != kMagic)
    return Corrupt(absl::StrCat(saved.size(), " bytes, too few or without its magic"));
  const size_t size = saved.size() - sizeof(uint64_t);
  const auto version = LoadLe<uint32_t>(saved.data() + kMagic.size());
  if (version != kVersion) {
    return Error(KVT_ERR_VERSION,
                 absl::StrCat("saved calibration: version is ", version, ", this library reads ", kVersion));
  }
  if (kernels::Hash(saved.data(), size) != LoadLe<uint64_t>(saved.data() + size))
    return Corrupt("its bytes do not have its checksum");
  Reader reader{saved.first(size)};
  reader.in.remove_prefix(kMagic.size() + sizeof version);
  Fingerprint fingerprint;
  reader.Bytes(fingerprint.data(), fingerprint.size());
  if (fingerprint != model->fingerprint()) {
    return Error(KVT_ERR_MISMATCH,
                 absl::StrCat("saved calibration: model fingerprint is ", Hex(kvt::Bytes(fingerprint)),
                              ", expected ", Hex(kvt::Bytes(model->fingerprint()))));
  }
  CalibrationOptions options;
  for (uint32_t* option : {&options.group_layers, &options.ratio_min, &options.layer_begin,
                           &options.layer_end, &options.head_begin, &options.head_end}) {
    Value(&reader, option);
  }
  if (options.group_layers == 0) return Corrupt("group_layers is 0");
  KVT_ASSIGN_OR_RETURN(std::shared_ptr<Calibrator> calibrator, Create(std::move(model), options));
  MutexLock lock(&calibrator->mu_);
  calibrator->Transfer(&reader);
  if (!reader.ok || !reader.in.empty() || calibrator->sample_.seen_ != calibrator->info_.tokens)
    return Corrupt("its lengths do not add up");
  const uint64_t tokens = calibrator->info_.tokens;
  if (tokens > kTokensMax) return Corrupt(absl::StrCat("tokens are ", tokens, ", the most are ", kTokensMax));
  if (!AllFinite(calibrator->sample_.halves_)) return Corrupt("a sampled row is not finite");
  const std::vector<int8_t>& importance = calibrator->sample_.importance_;
  if (!CheckImportance("importance", importance.data(), importance.size()).ok())
    return Corrupt("a sampled row's importance is out of range");
  for (const Sums& sums : calibrator->sums_) {
    if (!IsPlausible(sums, tokens))
      return Corrupt(absl::StrCat("sums of layers [", sums.layer_begin, ", ", sums.layer_end, ") are not of ",
                                  tokens, " rows"));
  }
  return calibrator;
}

}  // namespace kvt
