// Passes over rows of channels. Sums keep a few vectors of channels in registers while they go down some
// rows; what has no sums goes along the rows.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/norm/channels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <type_traits>

#include "backends/cpu/kernels/norm/channels.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using stored::load;
using stored::store;
using vectors::for_vectors;
using vectors::Full;
using vectors::kWidth;
using vectors::set;
using vectors::Tail;
using vectors::V;
using vectors::zero;

// Row: float*, stored::Bf16*, or stored::Any where dtypes differ or are f16.
template <class Row>
HWY_INLINE Row row_of(const TensorRef& ref, int64_t row) {
  const int64_t element = row * ref.type.shape.dim(-1);
  if constexpr (std::is_same_v<Row, stored::Any>)
    return Row{ref.data, ref.type.dtype} + element;
  else
    return reinterpret_cast<Row>(ref.data) + element;
}

// f(row type) for operands of those dtypes.
template <class F, class... Refs>
HWY_INLINE void with_rows(F f, const Refs&... refs) {
  const auto all = [&](ir::DType dtype) { return ((!refs || refs.type.dtype == dtype) && ...); };
  if (all(ir::DType::kF32))
    f(static_cast<float*>(nullptr));
  else if (all(ir::DType::kBf16))
    f(static_cast<stored::Bf16*>(nullptr));
  else
    f(stored::Any{nullptr, ir::DType::kF32});
}

// f(channel, number of vectors as a constant, part) over `n` channels, `kEach` vectors at a time.
template <int kEach, class F>
HWY_INLINE void for_columns(int64_t n, F f) {
  int64_t j = 0;
  for (; j + kEach * kWidth <= n; j += kEach * kWidth) f(j, std::integral_constant<int, kEach>(), Full{});
  for (; j + kWidth <= n; j += kWidth) f(j, std::integral_constant<int, 1>(), Full{});
  if (j < n) f(j, std::integral_constant<int, 1>(), Tail{static_cast<size_t>(n - j)});
}

// ---- moments

// Sums of differences from the first row: a mean far from zero costs no digits.
template <int kVectors, class Row, class Part>
HWY_INLINE void moments_of_columns(Row x, int64_t stride, int64_t rows, float* mean, float* squares,
                                   Part part) {
  V sums[kVectors], means[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    means[v] = load(x + v * kWidth, part);
    sums[v] = zero();
  }
  for (int64_t r = 1; r < rows; ++r)
    for (int v = 0; v < kVectors; ++v)
      sums[v] = hn::Add(sums[v], hn::Sub(load(x + (r * stride + v * kWidth), part), means[v]));
  const V count = set(static_cast<float>(rows));
  for (int v = 0; v < kVectors; ++v) {
    means[v] = hn::Add(means[v], hn::Div(sums[v], count));
    store(means[v], mean + v * kWidth, part);
    sums[v] = zero();
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      const V difference = hn::Sub(load(x + (r * stride + v * kWidth), part), means[v]);
      sums[v] = hn::MulAdd(difference, difference, sums[v]);
    }
  for (int v = 0; v < kVectors; ++v) store(sums[v], squares + v * kWidth, part);
}

void moments(const TensorRef& x, int64_t begin, int64_t end, float* mean, float* squares) {
  const int64_t channels = x.type.shape.dim(-1);
  with_rows(
      [&](auto any) HWY_ATTR {
        const auto rows = row_of<decltype(any)>(x, begin);
        for_columns<8>(channels, [&](int64_t j, auto count, auto part) HWY_ATTR {
          moments_of_columns<count.value>(rows + j, channels, end - begin, mean + j, squares + j, part);
        });
      },
      x);
}

// ---- maps

// What relu gives; not a number stays what it is.
HWY_INLINE V positive(V v) { return hn::IfThenElse(hn::Le(v, zero()), zero(), v); }

template <class Row, bool kAdds, bool kRelu>
HWY_INLINE void map_rows_as(const ChannelMap& a, const float* centre, const float* scale, int64_t begin,
                            int64_t end) {
  const int64_t channels = a.x.type.shape.dim(-1);
  const float* shift = a.shift;
  for (int64_t r = begin; r < end; ++r) {
    const Row x = row_of<Row>(a.x, r), y = row_of<Row>(a.y, r);
    const Row residual = kAdds ? row_of<Row>(a.residual, r) : x;
    for_vectors(channels, [=](int64_t i, auto part) HWY_ATTR {
      V v = hn::MulAdd(hn::Sub(load(x + i, part), load(centre + i, part)), load(scale + i, part),
                       load(shift + i, part));
      if constexpr (kAdds) v = hn::Add(v, load(residual + i, part));
      if constexpr (kRelu) v = positive(v);
      store(v, y + i, part);
    });
  }
}

void map_rows(const ChannelMap& a, int64_t begin, int64_t end) {
  const int64_t first = begin / a.sets.rows_of_set * a.x.type.shape.dim(-1);
  const float *centre = a.sets.centre + first, *scale = a.sets.scale + first;
  with_rows(
      [&](auto any) HWY_ATTR {
        using Row = decltype(any);
        if (a.residual && a.relu)
          map_rows_as<Row, true, true>(a, centre, scale, begin, end);
        else if (a.residual)
          map_rows_as<Row, true, false>(a, centre, scale, begin, end);
        else if (a.relu)
          map_rows_as<Row, false, true>(a, centre, scale, begin, end);
        else
          map_rows_as<Row, false, false>(a, centre, scale, begin, end);
      },
      a.x, a.residual, a.y);
}

// ---- gradients

enum class Mask { kNone, kFromX, kStored };

// dy where relu let pass: not where its result was 0.
HWY_INLINE V passed(V dy, V y) { return hn::IfThenElse(hn::Le(y, zero()), zero(), dy); }

template <class Row, Mask kMask>
struct SumRows {
  Row dy, dy2, x, mask, dz, dx;
  const float *centre, *scale, *shift;
  bool has_dy2, has_dz, has_dx;

  // The columns of `kVectors` vectors, down all rows: dz, dx and the sums.
  template <int kVectors, class Part>
  HWY_INLINE void columns(int64_t j, int64_t stride, int64_t rows, V* db, V* dw, Part part) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        const int64_t channel = j + v * kWidth, i = r * stride + channel;
        const V difference = hn::Sub(load(x + i, part), load(centre + channel, part));
        V d = load(dy + i, part);
        if (has_dy2) d = hn::Add(d, load(dy2 + i, part));
        if constexpr (kMask == Mask::kStored) d = passed(d, load(mask + i, part));
        if constexpr (kMask == Mask::kFromX)
          d = passed(d, hn::MulAdd(difference, load(scale + channel, part), load(shift + channel, part)));
        if (has_dz) store(d, dz + i, part);
        if (has_dx) store(hn::Mul(d, load(scale + channel, part)), dx + i, part);
        db[v] = hn::Add(db[v], d);
        dw[v] = hn::MulAdd(d, difference, dw[v]);
      }
  }
};

// Rows that are gone down at a time: so many that their elements stay in the first-level cache, where memory
// is read along the rows.
constexpr int64_t rows_at_once(int64_t channels) { return std::clamp<int64_t>(8192 / channels, 8, 256); }

// The sums of rows [begin, end) of the granule, stored or, unless `is_first`, added.
template <class Row, Mask kMask>
HWY_INLINE void sum_part(const ChannelSums& a, bool is_first, int64_t begin, int64_t end, float* dw,
                         float* db) {
  const int64_t channels = a.x.type.shape.dim(-1), first = begin / a.sets.rows_of_set * channels;
  const auto at = [&](const TensorRef& ref) { return row_of<Row>(ref ? ref : a.x, begin); };
  const SumRows<Row, kMask> rows{.dy = at(a.dy),
                                 .dy2 = at(a.dy2),
                                 .x = at(a.x),
                                 .mask = at(a.mask),
                                 .dz = at(a.dz),
                                 .dx = at(a.dx),
                                 .centre = a.sets.centre + first,
                                 .scale = a.sets.scale + first,
                                 .shift = a.shift,
                                 .has_dy2 = static_cast<bool>(a.dy2),
                                 .has_dz = static_cast<bool>(a.dz),
                                 .has_dx = static_cast<bool>(a.dx)};
  for_columns<4>(channels, [&](int64_t j, auto count, auto part) HWY_ATTR {
    constexpr int kVectors = decltype(count)::value;
    V sums_b[kVectors], sums_w[kVectors];
    for (int v = 0; v < kVectors; ++v) sums_b[v] = sums_w[v] = zero();
    rows.template columns<kVectors>(j, channels, end - begin, sums_b, sums_w, part);
    if (dw == nullptr) return;
    for (int v = 0; v < kVectors; ++v) {
      const int64_t i = j + v * kWidth;
      store(is_first ? sums_b[v] : hn::Add(load(db + i, part), sums_b[v]), db + i, part);
      store(is_first ? sums_w[v] : hn::Add(load(dw + i, part), sums_w[v]), dw + i, part);
    }
  });
}

template <class Row, Mask kMask>
HWY_INLINE void sum_rows_as(const ChannelSums& a, int64_t begin, int64_t end, float* dw, float* db) {
  const int64_t channels = a.x.type.shape.dim(-1), step = rows_at_once(channels);
  for (int64_t r = begin; r < end; r += step)
    sum_part<Row, kMask>(a, r == begin, r, std::min(end, r + step), dw, db);
  if (dw == nullptr) return;
  const float* rstd = a.rstd + begin / a.sets.rows_of_set * channels;
  for_vectors(channels, [=](int64_t i, auto part) HWY_ATTR {
    store(hn::Mul(load(dw + i, part), load(rstd + i, part)), dw + i, part);
  });
}

void sum_rows_of_channels(const ChannelSums& a, int64_t begin, int64_t end, float* dw, float* db) {
  with_rows(
      [&](auto any) HWY_ATTR {
        using Row = decltype(any);
        if (a.mask)
          sum_rows_as<Row, Mask::kStored>(a, begin, end, dw, db);
        else if (a.relu)
          sum_rows_as<Row, Mask::kFromX>(a, begin, end, dw, db);
        else
          sum_rows_as<Row, Mask::kNone>(a, begin, end, dw, db);
      },
      a.dy, a.dy2, a.x, a.mask, a.dz, a.dx);
}

template <class Row, bool kRelu>
HWY_INLINE void gradient_rows_as(const ChannelGradient& a, int64_t begin, int64_t end) {
  const int64_t channels = a.x.type.shape.dim(-1), first = begin / a.sets.rows_of_set * channels;
  const float *centre = a.sets.centre + first, *scale = a.sets.scale + first, *shift = a.shift;
  const float *slope = a.slope + first, *offset = a.offset + first;
  for (int64_t r = begin; r < end; ++r) {
    const Row dy = row_of<Row>(a.dy, r), x = row_of<Row>(a.x, r), dx = row_of<Row>(a.dx, r);
    for_vectors(channels, [=](int64_t i, auto part) HWY_ATTR {
      const V difference = hn::Sub(load(x + i, part), load(centre + i, part)), by = load(scale + i, part);
      V d = load(dy + i, part);
      if constexpr (kRelu) d = passed(d, hn::MulAdd(difference, by, load(shift + i, part)));
      store(hn::MulAdd(d, by, hn::MulAdd(difference, load(slope + i, part), load(offset + i, part))), dx + i,
            part);
    });
  }
}

void gradient_rows(const ChannelGradient& a, int64_t begin, int64_t end) {
  with_rows(
      [&](auto any) HWY_ATTR {
        if (a.shift != nullptr)
          gradient_rows_as<decltype(any), true>(a, begin, end);
        else
          gradient_rows_as<decltype(any), false>(a, begin, end);
      },
      a.dy, a.x, a.dx);
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(moments);
HWY_EXPORT(map_rows);
HWY_EXPORT(sum_rows_of_channels);
HWY_EXPORT(gradient_rows);

/// body(granule, first row, end).
template <class Body>
void for_granules(const ir::Shape& shape, ThreadPool& pool, Body body) {
  const Granules granules(shape);
  const auto granule = [&](int64_t g, int) { body(g, granules.begin(g), granules.end(g)); };
  if (shape.num_elements() > kBlockElements)
    pool.run(granules.count(), granule);
  else
    for (int64_t g = 0; g < granules.count(); ++g) granule(g, 0);  // too little to wake anyone
}

}  // namespace

void channel_moments(const TensorRef& x, float* mean, float* squares, ThreadPool& pool) {
  const int64_t channels = x.shape().dim(-1);
  for_granules(x.shape(), pool, [&](int64_t g, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(moments)(x, begin, end, mean + g * channels, squares + g * channels);
  });
}

void map_channels(const ChannelMap& map, ThreadPool& pool) {
  for_granules(map.x.shape(), pool, [&](int64_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(map_rows)(map, begin, end);
  });
}

void sum_channels(const ChannelSums& sums, ThreadPool& pool) {
  const int64_t channels = sums.x.shape().dim(-1);
  for_granules(sums.x.shape(), pool, [&](int64_t g, int64_t begin, int64_t end) {
    float* const dw = sums.dw == nullptr ? nullptr : sums.dw + g * channels;
    HWY_DYNAMIC_DISPATCH(sum_rows_of_channels)
    (sums, begin, end, dw, sums.dw == nullptr ? nullptr : sums.db + g * channels);
  });
}

void channel_gradient(const ChannelGradient& gradient, ThreadPool& pool) {
  for_granules(gradient.x.shape(), pool, [&](int64_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(gradient_rows)(gradient, begin, end);
  });
}

}  // namespace plimsoll::cpu
#endif
