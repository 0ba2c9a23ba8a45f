#include "codec/transform/blas.h"

#include <cblas.h>

#include <algorithm>

#include "base/mutex.h"

extern "C" void ssyevd_(const char* job, const char* triangle, const int* n, float* matrix, const int* stride,
                        float* values, float* work, const int* work_size, int* int_work,
                        const int* int_work_size, int* info, size_t job_len, size_t triangle_len);

namespace kvt::blas {
namespace {

class Gate {
 public:
  void Enter() {
    MutexLock lock(&mu_);
    while (inside_ == kMost) left_.Wait(&mu_);
    ++inside_;
  }
  void Leave() {
    MutexLock lock(&mu_);
    --inside_;
    left_.Signal();
  }

 private:
  static constexpr int kMost = 32;
  Mutex mu_;
  CondVar left_;
  int inside_ ABSL_GUARDED_BY(mu_) = 0;
};

// As wide as what it guards: OpenBLAS's buffers are the process's.
Gate& TheGate() {
  static Gate* const gate = new Gate;
  return *gate;
}

class Pass {
 public:
  Pass() { TheGate().Enter(); }
  ~Pass() { TheGate().Leave(); }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
};

}  // namespace

void Multiply(size_t m, size_t n, size_t inner, const Matrix& a, const Matrix& b, float* out,
              size_t out_stride) {
  const Pass pass;
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(inner), 1.0f, a.data, static_cast<int>(a.stride), b.data,
              static_cast<int>(b.stride), 0.0f, out, static_cast<int>(out_stride));
}

void AddOuter(size_t n, size_t count, const float* rows, size_t stride, float* out) {
  const Pass pass;
  cblas_ssyrk(CblasRowMajor, CblasLower, CblasTrans, static_cast<int>(n), static_cast<int>(count), 1.0f, rows,
              static_cast<int>(stride), 1.0f, out, static_cast<int>(n));
}

Status Eigen(size_t n, float* matrix, std::vector<float>* values) {
  const Pass pass;
  const int size = static_cast<int>(n);
  values->resize(n);
  float work_size = 0;
  int int_work_size = 0, query = -1, info = 0;
  // By columns, LAPACK's order, our lower triangle is the upper one.
  ssyevd_("V", "U", &size, matrix, &size, values->data(), &work_size, &query, &int_work_size, &query, &info,
          1, 1);
  // The size comes as a float, which may have been rounded down.
  std::vector<float> work(static_cast<size_t>(work_size) + static_cast<size_t>(work_size / 1024) + 16);
  std::vector<int> int_work(static_cast<size_t>(int_work_size));
  const int work_count = static_cast<int>(work.size());
  ssyevd_("V", "U", &size, matrix, &size, values->data(), work.data(), &work_count, int_work.data(),
          &int_work_size, &info, 1, 1);
  if (info != 0) {
    return Error(KVT_ERR_INTERNAL,
                 absl::StrCat("eigenvectors of a ", n, " x ", n, " covariance: ssyevd gives info ", info));
  }
  std::reverse(values->begin(), values->end());
  for (size_t i = 0; i < n / 2; ++i)
    std::swap_ranges(matrix + i * n, matrix + (i + 1) * n, matrix + (n - 1 - i) * n);
  return OkStatus();
}

}  // namespace kvt::blas
