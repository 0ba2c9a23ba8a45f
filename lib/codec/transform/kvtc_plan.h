// KvtcPlan: how KVTC (arXiv 2511.01815) cuts the components of a row into blocks: their sizes and types, by
// dynamic programming under a budget of bits, with errors that are simulated.
//
// Stateless and thread-safe. A plan depends on the machine's arithmetic, so segments say theirs.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_KVTC_PLAN_H_
#define KVARTET_LIB_CODEC_TRANSFORM_KVTC_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvt {

enum class KvtcType : uint8_t { kNone = 0, kInt2 = 1, kInt4 = 2, kFp8 = 3 };
inline constexpr uint32_t kKvtcTypes = 4;
inline constexpr std::array<uint32_t, 5> kKvtcSizes = {1, 16, 64, 256, 1024};

// Bits of an element.
inline constexpr uint32_t KvtcBits(KvtcType type) {
  return type == KvtcType::kNone ? 0 : 1u << static_cast<uint32_t>(type);
}

struct KvtcBlock {
  uint32_t first = 0, size = 0;  // components
  KvtcType type = KvtcType::kNone;
};

// A shift and a scale, f16 each, of every block of a token that has a type.
inline constexpr uint32_t kKvtcBlockBits = 32;

// The blocks of components with these deviations, in order, up to the last one that has a type; the last one
// may have fewer components than its size. `budget`: bits of a token.
std::vector<KvtcBlock> PlanKvtc(const std::vector<float>& deviations, uint64_t budget);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_KVTC_PLAN_H_
