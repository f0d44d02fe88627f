// Pooling over windows of images: a row of results a tile, channels in vectors, so that a window's elements
// are looked at in registers. Gradients gather: an element adds up the windows that cover it.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/pooling.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cstring>
#include <limits>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "ops/pooling_window.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_POOLING_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_POOLING_ARGS_
namespace plimsoll::cpu {
namespace {

// Windows over an image; `whole` and `parts` [.., height, width, channels] of elements of one dtype: the
// image, or its gradient, and what it is pooled to, or that gradient.
struct Pooling {
  std::byte *whole, *parts;
  uint8_t* index;  // of max_pool2d
  ir::DType dtype;
  ops::PoolAxis rows, cols;
  int64_t channels;
  bool skip_padding;
};

inline float divisor_of(const Pooling& a, int64_t oh, int64_t ow) {
  return static_cast<float>(ops::mean_divisor(a.rows, a.cols, a.skip_padding, oh, ow));
}

}  // namespace
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using stored::load;
using stored::store;
using vectors::F32;
using vectors::Full;
using vectors::kWidth;
using vectors::set;
using vectors::Tail;
using vectors::V;
using vectors::zero;
using U8 = hn::Rebind<uint8_t, F32>;
using I32 = hn::RebindToSigned<F32>;

// Positions of windows as numbers, from and to bytes.
HWY_INLINE V load_bytes(const uint8_t* p, Full) {
  return hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(U8(), p)));
}
HWY_INLINE V load_bytes(const uint8_t* p, Tail t) {
  HWY_ALIGN uint8_t bytes[kWidth] = {};
  std::memcpy(bytes, p, t.count);
  return load_bytes(bytes, Full{});
}
HWY_INLINE void store_bytes(V v, uint8_t* p, Full) {
  hn::StoreU(hn::DemoteTo(U8(), hn::ConvertTo(I32(), v)), U8(), p);
}
HWY_INLINE void store_bytes(V v, uint8_t* p, Tail t) {
  HWY_ALIGN uint8_t bytes[kWidth];
  store_bytes(v, bytes, Full{});
  std::memcpy(p, bytes, t.count);
}

// f(a pointer of that element, null).
template <class F>
HWY_INLINE void with_dtype(ir::DType dtype, F f) {
  stored::with_element(dtype, [&](auto element) HWY_ATTR { f(static_cast<decltype(element)*>(nullptr)); });
}

// One result of every channel: window (oh, ow) of image n.
template <class T>
HWY_INLINE void max_of_window(const Pooling& a, const T* image, int64_t oh, int64_t ow, T* y,
                              uint8_t* index) {
  const ops::PoolRange hs = a.rows.elements(oh), ws = a.cols.elements(ow);
  const int64_t row = a.rows.start(oh), col = a.cols.start(ow), kernel = a.cols.kernel;
  const int64_t width = a.cols.extent, channels = a.channels;
  const auto position = [=](int64_t h, int64_t w) {
    return set(static_cast<float>((h - row) * kernel + w - col));
  };
  vectors::for_vectors(channels, [=](int64_t c, auto part) HWY_ATTR {
    V largest = set(-std::numeric_limits<float>::infinity()), where = position(hs.begin, ws.begin);
    for (int64_t h = hs.begin; h < hs.end; ++h)
      for (int64_t w = ws.begin; w < ws.end; ++w) {
        const V v = load(image + ((h * width + w) * channels + c), part);
        const auto wins = hn::Or(hn::Gt(v, largest), hn::IsNaN(v));
        largest = hn::IfThenElse(wins, v, largest);
        where = hn::IfThenElse(wins, position(h, w), where);
      }
    store(largest, y + c, part);
    store_bytes(where, index + c, part);
  });
}

template <class T>
HWY_INLINE void mean_of_window(const Pooling& a, const T* image, int64_t oh, int64_t ow, T* y) {
  const ops::PoolRange hs = a.rows.elements(oh), ws = a.cols.elements(ow);
  const int64_t width = a.cols.extent, channels = a.channels;
  const V count = set(divisor_of(a, oh, ow));
  vectors::for_vectors(channels, [=](int64_t c, auto part) HWY_ATTR {
    V sum = zero();
    for (int64_t h = hs.begin; h < hs.end; ++h)
      for (int64_t w = ws.begin; w < ws.end; ++w)
        sum = hn::Add(sum, load(image + ((h * width + w) * channels + c), part));
    store(hn::Div(sum, count), y + c, part);
  });
}

// Row `oh` of the results of image n.
void pool_row(const Pooling& a, int64_t n, int64_t oh) {
  with_dtype(a.dtype, [&](auto* element) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(element)>;
    const int64_t first = (n * a.rows.windows() + oh) * a.cols.windows() * a.channels;
    const T* image = reinterpret_cast<const T*>(a.whole) + n * a.rows.extent * a.cols.extent * a.channels;
    T* y = reinterpret_cast<T*>(a.parts) + first;
    for (int64_t ow = 0; ow < a.cols.windows(); ++ow, y += a.channels)
      if (a.index != nullptr)
        max_of_window(a, image, oh, ow, y, a.index + first + ow * a.channels);
      else
        mean_of_window(a, image, oh, ow, y);
  });
}

// dx of element (h, w) of image n, whose windows' gradients begin at `dy`.
template <class T>
HWY_INLINE void gather_windows(const Pooling& a, const T* dy, const uint8_t* index, int64_t h, int64_t w,
                               T* dx) {
  const ops::PoolRange rows = a.rows.covering(h), cols = a.cols.covering(w);
  const int64_t per_row = a.cols.windows(), channels = a.channels;
  const auto window = [&](int64_t oh, int64_t ow, int64_t c, V sum, auto part) HWY_ATTR {
    const int64_t i = (oh * per_row + ow) * channels + c;
    const V d = load(dy + i, part);
    if (index == nullptr) return hn::Add(sum, hn::Div(d, set(divisor_of(a, oh, ow))));
    const int64_t position = (h - a.rows.start(oh)) * a.cols.kernel + w - a.cols.start(ow);
    const auto is_here = hn::Eq(load_bytes(index + i, part), set(static_cast<float>(position)));
    return hn::Add(sum, hn::IfThenElseZero(is_here, d));
  };
  vectors::for_vectors(channels, [&](int64_t c, auto part) HWY_ATTR {
    V sum = zero();
    for (int64_t oh = rows.begin; oh < rows.end; ++oh)
      for (int64_t ow = cols.begin; ow < cols.end; ++ow) sum = window(oh, ow, c, sum, part);
    store(sum, dx + c, part);
  });
}

// Row `h` of the gradient of image n.
void unpool_row(const Pooling& a, int64_t n, int64_t h) {
  with_dtype(a.dtype, [&](auto* element) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(element)>;
    const int64_t first = n * a.rows.windows() * a.cols.windows() * a.channels;
    const T* dy = reinterpret_cast<const T*>(a.parts) + first;
    const uint8_t* index = a.index == nullptr ? nullptr : a.index + first;
    T* dx = reinterpret_cast<T*>(a.whole) + (n * a.rows.extent + h) * a.cols.extent * a.channels;
    for (int64_t w = 0; w < a.cols.extent; ++w, dx += a.channels) gather_windows(a, dy, index, h, w, dx);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(pool_row);
HWY_EXPORT(unpool_row);

Pooling pooling_of(const KernelCall& call, const TensorRef& whole, const TensorRef& parts) {
  const ir::Attrs& attrs = call.op->attrs;
  return {.whole = whole.data,
          .parts = parts.data,
          .index = nullptr,
          .dtype = whole.type.dtype,
          .rows = ops::pool_axis(attrs, 0, whole.shape().dim(1)),
          .cols = ops::pool_axis(attrs, 1, whole.shape().dim(2)),
          .channels = whole.shape().dim(3),
          .skip_padding = attrs.flag("skip_padding")};
}

template <bool kMax>
void pool(const KernelCall& call, ThreadPool& threads) {
  Pooling a = pooling_of(call, call.inputs[0], call.outputs[0]);
  if (kMax) a.index = call.outputs[1].as<uint8_t>();
  const int64_t rows = a.rows.windows();
  threads.run(call.inputs[0].shape().dim(0) * rows, [&](int64_t row, int) {
    HWY_DYNAMIC_DISPATCH(pool_row)(a, row / rows, row % rows);
  });
}

template <bool kMax>
void pool_grad(const KernelCall& call, ThreadPool& threads) {
  Pooling a = pooling_of(call, call.outputs[0], call.inputs[0]);
  if (kMax) a.index = call.inputs[1].as<uint8_t>();
  const int64_t rows = a.rows.extent;
  threads.run(call.outputs[0].shape().dim(0) * rows, [&](int64_t row, int) {
    HWY_DYNAMIC_DISPATCH(unpool_row)(a, row / rows, row % rows);
  });
}

// Operands of a gradient may be of two dtypes: then they come as f32.
constexpr Kernel kPoolingKernels[] = {
    {.op = "avg_pool2d", .run = pool<false>, .stored_inputs = 0b1, .stored_outputs = 0b1},
    {.op = "avg_pool2d_grad", .run = pool_grad<false>, .stored_inputs = 0b1, .stored_outputs = 0b1},
    {.op = "max_pool2d", .run = pool<true>, .stored_inputs = 0b1, .stored_outputs = 0b1},
    {.op = "max_pool2d_grad", .run = pool_grad<true>, .stored_inputs = 0b1, .stored_outputs = 0b1}};

}  // namespace

std::span<const Kernel> pooling_kernels() { return kPoolingKernels; }

}  // namespace plimsoll::cpu
#endif
