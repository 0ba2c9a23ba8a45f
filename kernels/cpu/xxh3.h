// XXH3-64 compiled for several instruction sets; the best one for the processor is chosen once.
#ifndef KVARTET_KERNELS_CPU_XXH3_H_
#define KVARTET_KERNELS_CPU_XXH3_H_

#include <stddef.h>
#include <stdint.h>

namespace kvt::kernels {

// Storage of a streaming state, the same for every build; its content is private to the build that wrote it.
struct alignas(64) Xxh3State {
  unsigned char bytes[576];
};

struct Xxh3Functions {
  const char* name;
  uint64_t (*hash)(const void* data, size_t size);
  void (*reset)(Xxh3State* state);
  void (*update)(Xxh3State* state, const void* data, size_t size);
  uint64_t (*digest)(const Xxh3State* state);
};

extern const Xxh3Functions kXxh3Baseline;
#if defined(__x86_64__)
extern const Xxh3Functions kXxh3Avx2;
extern const Xxh3Functions kXxh3Avx512;
#endif

const Xxh3Functions& Xxh3();

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_XXH3_H_
