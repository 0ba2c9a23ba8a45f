// DenseWalk: quantising all kept components of up to kTokens tokens, by the trellis or one by one: from
// values to codes, and what both encoding and calibration need to know of each.
//
// One thread at a time.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_DENSE_WALK_H_
#define KVARTET_LIB_CODEC_TRANSFORM_DENSE_WALK_H_

#include <span>
#include <vector>

#include "codec/transform/dense_tables.h"

namespace kvt {

// As kvt_codec_options_t.quantiser.
enum class Quantiser : uint8_t { kTrellis = 1, kScalar = 2 };

class DenseWalk {
 public:
  static constexpr size_t kTokens = 512;

  // What is the same for all components of a token.
  struct Token {
    int8_t gain = 0;        // quarters of an octave
    int8_t importance = 0;  // the same, and what a finer step adds
  };

  // values[j * kTokens + t] of components 0 to classes.size(), which have the classes given.
  void Run(const DenseTables& tables, Quantiser quantiser, int32_t step, const std::vector<int32_t>& classes,
           const float* values, std::span<const Token> tokens);

  int16_t code(size_t component, size_t token) const { return codes_[component * kTokens + token]; }
  // The table of the code, quantiser included.
  uint32_t table(size_t component, size_t token) const { return used_[component * kTokens + token]; }
  // |value| in the token's steps.
  float distance(size_t component, size_t token, const float* values) const {
    return std::fabs(values[component * kTokens + token]) * factors_[token];
  }

 private:
  void RunTrellis(const DenseTables& tables, const std::vector<int32_t>& classes, const float* values,
                  std::span<const Token> tokens);
  void RunScalar(const DenseTables& tables, const std::vector<int32_t>& classes, const float* values,
                 std::span<const Token> tokens);
  void FillTables(int32_t class_of_component, std::span<const Token> tokens);

  std::vector<float> factors_, costs_;
  std::vector<uint16_t> tables_;
  std::vector<uint8_t> arrivals_, used_, states_;
  std::vector<int16_t> codes_;
};

// A token's gain, from the mean square of its standardised leading components.
inline int8_t GainOf(float mean_square) {
  if (!(mean_square > 0)) return 0;
  const auto quarters = static_cast<int32_t>(std::lrint(2 * std::log2(double{mean_square})));
  return static_cast<int8_t>(std::clamp(quarters, -kGainMost, kGainMost));
}

// The step of a token, in sixteenths.
inline int32_t TokenStep(int32_t step, const DenseWalk::Token& token) {
  return step + kOctave / 4 * (token.gain + token.importance);
}

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_DENSE_WALK_H_
