// Profile: the calibrated tables that the transform codec needs for one model: means, amplitudes, bases,
// standard deviations and books. docs/transform.md describes the bytes.
//
// Immutable after Parse, so thread-safe. Parse is safe on hostile bytes: what it returns has finite numbers,
// ascending books and sizes that add up. A flipped byte anywhere is detected.
#ifndef KVARTET_LIB_CODEC_PROFILE_H_
#define KVARTET_LIB_CODEC_PROFILE_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "codec/entropy/symbol_table.h"
#include "codec/profile_rungs.h"
#include "key/key.h"
#include "model/model.h"

namespace kvt {

inline constexpr uint32_t kProfileVersion = 1;
inline constexpr uint32_t kBookBitsMax = 8;
inline constexpr uint32_t kRatioMin = 4, kRatioMax = 32;
inline constexpr uint32_t kDenseRatioMin = 8, kDenseRatioMax = 96, kTransformRatioMax = kDenseRatioMax;
// What is measured of a calibration's rows is measured at these ratios.
inline constexpr std::array<uint32_t, 4> kMeasuredRatios = {4, 8, 16, 32};
inline constexpr uint32_t kMillion = 1000000;

struct ProfileGroup {
  uint32_t stream = 0;
  uint32_t layer_begin = 0, layer_end = 0;
  std::vector<float> mean;       // of a row of all layers
  std::vector<float> amplitude;  // by layer
  std::vector<float> deviation;  // by component, descending
  // f16, a row of mean.size() values a component; inside the profile's bytes, at a multiple of 64 of them.
  const uint8_t* basis = nullptr;
  // By layer, then head: the metric's root, packed; and both ways as squares. Empty: the identity.
  std::vector<float> metric, forward, backward;
  // Of codec dense; empty and 0 without it.
  std::vector<float> spread;  // by component
  uint32_t leading = 0;       // components that gains are measured on

  size_t width() const { return mean.size(); }
  size_t components() const { return deviation.size(); }
};

struct ProfileBook {
  std::vector<float> levels;  // 2^bits of them
  float distortion = 1;       // part of a component's variance that is lost
};

using Books = std::array<ProfileBook, kBookBitsMax + 1>;  // by bits; that of 0 bits has no level

inline constexpr uint32_t kDenseClasses = 64, kDenseTables = 2 * kDenseClasses;
inline constexpr uint32_t kDenseBits = 12;  // of each table

struct DenseFacts {
  // Ascending: steps in sixteenths of an octave, and the ratios that calibration had at them.
  std::vector<int16_t> steps;
  std::vector<float> ratios;
  std::vector<SymbolTable> tables;  // by class, then by quantiser; each has an escape
  std::vector<float> centres;       // three for each table
};

// All but the bases.
struct ProfileFacts {
  Fingerprint model{};
  uint32_t layer_begin = 0, layer_end = 0, head_begin = 0, head_end = 0;
  uint32_t streams = 0, element = 0;
  std::array<uint32_t, 2> dims{};  // by stream
  uint32_t ratio_min = kRatioMin;
  uint64_t tokens = 0;
  uint32_t documents = 0;
  std::vector<ProfileGroup> groups;  // by group of layers, then by stream
  // Of a million bits of the budget, those of escapes, at each of kMeasuredRatios.
  std::array<uint32_t, kMeasuredRatios.size()> escapes{};
  Books books;
  std::shared_ptr<const DenseFacts> dense;  // null: not for codec dense
};

class Profile {
 public:
  // Copies the bytes. KVT_ERR_CORRUPT; KVT_ERR_VERSION.
  static StatusOr<std::shared_ptr<const Profile>> Parse(Bytes bytes);

  const ProfileFacts& facts() const { return facts_; }
  // The first 16 bytes of the SHA-256 of the profile's own bytes.
  const Fingerprint& fingerprint() const { return fingerprint_; }
  // Those of the rungs included.
  Bytes bytes() const { return bytes_; }
  Bytes own_bytes() const { return bytes_.first(own_size_); }
  // None where they were not measured.
  const ProfileRungs& rungs() const { return rungs_; }

  // OK, or KVT_ERR_MISMATCH that names the field.
  Status CheckModel(const Model& model) const;

 private:
  Profile() = default;
  std::string bytes_owned_;
  Bytes bytes_;
  uint64_t own_size_ = 0;
  ProfileFacts facts_;
  ProfileRungs rungs_;
  Fingerprint fingerprint_{};
};

// The bytes of a profile; the bases that `facts` points at are copied into them.
std::string WriteProfile(const ProfileFacts& facts);

// Of a profile's own bytes.
StatusOr<Fingerprint> FingerprintOf(Bytes own_bytes);

// What a person wants to know of a profile, as JSON.
std::string DescribeProfile(const Profile& profile);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_PROFILE_H_
