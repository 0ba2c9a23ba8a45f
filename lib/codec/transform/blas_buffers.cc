// Keeps OpenBLAS's calls for work buffers apart. The serial archive takes the first buffer that is not marked
// and then marks it, with nothing between two threads that look at the same time: both get it, and their
// products come out wrong without a sign. The linker (--wrap) sends its calls here.
//
// Thread-safe.
#include "base/mutex.h"

extern "C" {
void* __real_blas_memory_alloc(int kind);
void __real_blas_memory_free(void* buffer);
void* __wrap_blas_memory_alloc(int kind);
void __wrap_blas_memory_free(void* buffer);
}

namespace {

kvt::Mutex& Buffers() {
  static kvt::Mutex* const mutex = new kvt::Mutex;
  return *mutex;
}

}  // namespace

void* __wrap_blas_memory_alloc(int kind) {
  kvt::MutexLock lock(&Buffers());
  return __real_blas_memory_alloc(kind);
}

void __wrap_blas_memory_free(void* buffer) {
  kvt::MutexLock lock(&Buffers());
  __real_blas_memory_free(buffer);
}
