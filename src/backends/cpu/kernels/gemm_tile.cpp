// A tile of C over the whole of k, after Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (TOMS 2008): per granule the tile's B is packed once, then each panel of A meets every panel of
// B while it lies in the first-level cache.
//
//            n0 .. n1  (<= 256 columns, packed B: second-level cache)
//          +----+----+----+
//   kRows  | A panel stays|, B panels pass by            for each granule of k:  pack B
//          +----+----+----+                                for each panel of A:  pack it or read in place
//          |              |                                  for each panel of B:  micro-kernel
//     m1   +--------------+
#include "backends/cpu/kernels/gemm_tile.h"

#include <algorithm>

#include "backends/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/gemm_tile.cpp"
#include "hwy/foreach_target.h"
// Highway's order: after foreach_target.
#include "backends/cpu/kernels/gemm_micro-inl.h"
#include "backends/cpu/kernels/gemm_pack-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

// Rows a multiple of 2 KiB apart fall into so few sets of the first-level cache that they evict one another.
inline bool readable_in_place(const ConstMatrix& a) {
  return a.col_stride == 1 && a.row_stride % 512 != 0;
}

struct Granule {
  int64_t p0, kc;
  bool first, last;
};

class TileRun {
 public:
  TileRun(const GemmArgs& args, const GemmTile& tile, float* scratch)
      : g_(args), t_(tile), a_panel_(scratch), b_packed_(scratch + kGemmPanelFloats) {}

  void granule(const Granule& s) {
    pack_b(s);
    for (int64_t i = t_.m0; i < t_.m1; i += kRows) {
      const int64_t rows = std::min<int64_t>(kRows, t_.m1 - i);
      const ConstMatrix a{g_.a.data + i * g_.a.row_stride + s.p0 * g_.a.col_stride, g_.a.row_stride, g_.a.col_stride};
      MicroArgs m{};
      m.c_stride = g_.c_row_stride;
      m.kc = s.kc;
      m.add = g_.accumulate || !s.first;
      if (a.col_stride == 1) {
        take_rows(a, rows, m);
        columns(s, i, m, kMicros<kVectors, RowsOfA>[rows - 1], kMicros<1, RowsOfA>[rows - 1]);
      } else {
        take_panel(a, rows, m);
        columns(s, i, m, kMicros<kVectors, PanelOfA>[rows - 1], kMicros<1, PanelOfA>[rows - 1]);
      }
    }
  }

 private:
  static int64_t panel_width(int64_t columns) { return columns > kLanes ? kColumns : kLanes; }

  void pack_b(const Granule& s) {
    float* to = b_packed_;
    for (int64_t j = t_.n0; j < t_.n1; j += kColumns) {
      const int64_t columns = std::min<int64_t>(kColumns, t_.n1 - j), width = panel_width(columns);
      const ConstMatrix b{g_.b.data + s.p0 * g_.b.row_stride + j * g_.b.col_stride, g_.b.row_stride, g_.b.col_stride};
      pack_panel(b, s.kc, columns, width, to);
      to += s.kc * width;
    }
  }

  void take_rows(const ConstMatrix& a, int64_t rows, MicroArgs& m) {
    m.a = a.data;
    m.a_stride = a.row_stride;
    if (readable_in_place(a) || rows == 1) return;
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(a_panel_ + r * m.kc, a.data + r * a.row_stride, static_cast<size_t>(m.kc) * sizeof(float));
    m.a = a_panel_;
    m.a_stride = m.kc;
  }

  void take_panel(const ConstMatrix& a, int64_t rows, MicroArgs& m) {
    pack_panel({a.data, a.col_stride, a.row_stride}, m.kc, rows, kPanelRows, a_panel_);
    m.a = a_panel_;
  }

  void columns(const Granule& s, int64_t i, MicroArgs& m, Micro wide, Micro narrow) {
    m.b = b_packed_;
    for (int64_t j = t_.n0; j < t_.n1; j += kColumns) {
      m.columns = std::min<int64_t>(kColumns, t_.n1 - j);
      m.c = g_.c + i * g_.c_row_stride + j;
      m.bias = g_.bias && s.last ? g_.bias + j : nullptr;
      const int64_t width = panel_width(m.columns);
      (width == kColumns ? wide : narrow)(m);
      m.b += s.kc * width;
    }
  }

  const GemmArgs& g_;
  const GemmTile& t_;
  float* a_panel_;
  float* b_packed_;
};

void gemm_tile_impl(const GemmArgs& args, const GemmTile& tile, float* scratch) {
  TileRun run(args, tile, scratch);
  const int64_t segment = args.k_segment > 0 ? args.k_segment : args.k;
  for (int64_t s = 0; s < args.k; s += segment) {
    const int64_t end = std::min(args.k, s + segment);
    for (int64_t p = s; p < end; p += kGemmGranule) {
      const int64_t kc = std::min(kGemmGranule, end - p);
      run.granule({.p0 = p, .kc = kc, .first = p == 0, .last = p + kc == args.k});
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(gemm_tile_impl);

void gemm_tile(const GemmArgs& args, const GemmTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(gemm_tile_impl)(args, tile, scratch);
}

}  // namespace plimsoll::cpu
#endif
