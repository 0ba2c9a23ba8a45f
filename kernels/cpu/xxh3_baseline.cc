#define KVT_XXH3_FUNCTIONS kXxh3Baseline
#define KVT_XXH3_NAME "baseline"
#include "cpu/xxh3.inc"

namespace kvt::kernels {
namespace {

const Xxh3Functions& Choose() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return kXxh3Avx512;
  if (__builtin_cpu_supports("avx2")) return kXxh3Avx2;
#endif
  return kXxh3Baseline;
}

}  // namespace

const Xxh3Functions& Xxh3() {
  static const Xxh3Functions& chosen = Choose();
  return chosen;
}

}  // namespace kvt::kernels
