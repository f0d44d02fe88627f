// cuBLASLt without products, for tests.
#include "backends/cuda/api.h"

using plimsoll::cuda::Handle;

extern "C" {
int cublasLtCreate(Handle* handle) {
  static int one = 0;
  return *handle = &one, 0;
}
int cublasLtDestroy(Handle) { return 0; }
int cublasLtMatmulDescCreate(Handle*, int, int) { return 15; }
int cublasLtMatmulDescDestroy(Handle) { return 0; }
int cublasLtMatmulDescSetAttribute(Handle, int, const void*, size_t) { return 15; }
int cublasLtMatrixLayoutCreate(Handle*, int, uint64_t, uint64_t, int64_t) { return 15; }
int cublasLtMatrixLayoutDestroy(Handle) { return 0; }
int cublasLtMatmulPreferenceCreate(Handle*) { return 15; }
int cublasLtMatmulPreferenceDestroy(Handle) { return 0; }
int cublasLtMatmulPreferenceSetAttribute(Handle, int, const void*, size_t) { return 15; }
int cublasLtMatmulAlgoGetHeuristic(Handle, Handle, Handle, Handle, Handle, Handle, Handle, int, void*, int*) {
  return 15;
}
int cublasLtMatmul(Handle, Handle, const void*, const void*, Handle, const void*, Handle, const void*,
                   const void*, Handle, void*, Handle, const void*, void*, size_t, Handle) {
  return 15;
}
}
