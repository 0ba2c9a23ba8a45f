// Tells OpenBLAS which kernels to take. It knows processors by their model numbers and gives those that are
// newer than itself the kernels of SSE3, at a third of the speed; here the processor's features decide.
// OpenBLAS asks the environment first, so the linker (--wrap) sends its question here. What the user set
// there stays; what it would print on the user's terminal is not asked for.
//
// Thread-safe as far as the environment is.
#include <cstdlib>
#include <cstring>

extern "C" {
char* __real_getenv(const char* name);
char* __wrap_getenv(const char* name);
}

namespace {

// The name of OpenBLAS for kernels that this processor can run; null: let it choose.
const char* Kernels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

}  // namespace

char* __wrap_getenv(const char* name) {
  if (std::strcmp(name, "OPENBLAS_VERBOSE") == 0) return nullptr;
  char* const value = __real_getenv(name);
  if (value == nullptr && std::strcmp(name, "OPENBLAS_CORETYPE") == 0) return const_cast<char*>(Kernels());
  return value;
}
