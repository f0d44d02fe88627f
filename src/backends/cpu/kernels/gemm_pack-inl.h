// Packing: what the micro-kernel reads lies in the order in which it reads it. A panel of B is kColumns (or, at
// the right edge, a vector) of columns: for each k their elements side by side, zeros beyond the edge.
#include "backends/cpu/kernels/gemm_simd-inl.h"

#if defined(PLIMSOLL_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_GEMM_PACK_INL_H_
#undef PLIMSOLL_GEMM_PACK_INL_H_
#else
#define PLIMSOLL_GEMM_PACK_INL_H_
#endif

#include "backends/cpu/kernels/gemm.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

// Any strides, element by element; also the edges of the fast ways below.
inline void pack_strided(const ConstMatrix& b, int64_t p0, int64_t p1, int64_t columns, int64_t width, float* to) {
  for (int64_t p = p0; p < p1; ++p) {
    for (int64_t j = 0; j < columns; ++j) to[p * width + j] = b.data[p * b.row_stride + j * b.col_stride];
    for (int64_t j = columns; j < width; ++j) to[p * width + j] = 0.0f;
  }
}

// Columns contiguous: a copy of rows.
inline void pack_rows(const ConstMatrix& b, int64_t kc, int64_t columns, int64_t width, float* to) {
  for (int64_t p = 0; p < kc; ++p) {
    const float* from = b.data + p * b.row_stride;
    for (int64_t j = 0; j < width; j += kLanes) {
      const int64_t left = columns - j;
      store(left >= kLanes ? load(from + j) : load_first(from + j, left), to + p * width + j);
    }
  }
}

// Rows contiguous (x W^T): transposed, four k by a vector of columns at a time.
inline void pack_transposed(const ConstMatrix& b, int64_t kc, int64_t columns, int64_t width, float* to) {
  const int64_t whole = kc / 4 * 4;
  for (int64_t j = 0; j < columns; j += kLanes) {
    const float* from = b.data + j * b.col_stride;
    for (int64_t p = 0; p < whole; p += 4) transpose4(from + p, b.col_stride, to + p * width + j, width);
  }
  pack_strided(b, whole, kc, columns, width, to);
}

// Packs kc rows and `columns` <= width columns of `b` as one panel of `width`, a multiple of kLanes.
inline void pack_panel(const ConstMatrix& b, int64_t kc, int64_t columns, int64_t width, float* to) {
  if (b.col_stride == 1) return pack_rows(b, kc, columns, width, to);
  if (b.row_stride == 1 && columns == width) return pack_transposed(b, kc, columns, width, to);
  pack_strided(b, 0, kc, columns, width, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#endif
