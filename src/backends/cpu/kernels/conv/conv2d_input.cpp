// The gradient of a convolution's images. With stride s the pixels of dx fall into s x s classes by the taps
// of the kernel that reach them; each class is a convolution of dy with stride 1 and the taps of that class,
// in falling order:
//
//   stride 2, kernel 3, padding 1, along one axis
//     dx  0 1 2 3 4 5        even pixels: tap 1 alone            dx[2a]     = dy[a] w[1]
//     dy   0   1   2         odd pixels: taps 2 and 0            dx[2a + 1] = dy[a] w[2] + dy[a + 1] w[0]
//
// So no product is with a zero that the stride puts in. The taps of a class are copied to where they follow
// one another; with stride 1 the products go where dx is, else through scratch, some rows at a time.
#include <cstring>

#include "backends/cpu/kernels/conv/conv_products.h"
#include "backends/cpu/kernels/conv/depthwise.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kRowsBytes = 2 << 20;
/// Of the weight, or of pixels, that a task copies.
constexpr int64_t kCopiedRows = 256;

/// The pixels first, first + stride, … of one axis, and the taps that reach them.
struct AxisClass {
  int64_t first = 0, stride = 1, pixels = 0;
  int64_t taps = 0, last_tap = 0, tap_step = 1;
  int64_t dy_first = 0, dy_spread = 1;  ///< dy's pixel of the last tap at the first pixel; between taps
};

AxisClass axis_class(const ConvExtents& e, size_t axis, int64_t first) {
  const int64_t stride = e.how.stride[axis], dilation = e.how.dilation[axis],
                from = first + e.how.padding[axis];
  const int64_t extent = axis == 0 ? e.height : e.width,
                kernel = axis == 0 ? e.kernel_height : e.kernel_width;
  AxisClass c{
      .first = first, .stride = stride, .pixels = first < extent ? ceil_div(extent - first, stride) : 0};
  for (int64_t tap = 0; tap < kernel; ++tap) {
    if ((from - tap * dilation) % stride != 0) continue;
    if (c.taps++ > 0) c.tap_step = tap - c.last_tap;
    c.last_tap = tap;
  }
  c.dy_first = (from - c.last_tap * dilation) / stride;
  c.dy_spread = c.taps > 1 ? c.tap_step * dilation / stride : 1;
  return c;
}

/// The pixels of dx that one set of taps reaches.
struct PixelClass {
  AxisClass down, across;
  [[nodiscard]] int64_t pixels() const { return down.pixels * across.pixels; }
  [[nodiscard]] int64_t taps() const { return down.taps * across.taps; }
};

template <typename Visit>
void for_classes(const ConvExtents& e, const Visit& visit) {
  for (int64_t h = 0; h < e.how.stride[0]; ++h)
    for (int64_t w = 0; w < e.how.stride[1]; ++w) {
      const PixelClass c{axis_class(e, 0, h), axis_class(e, 1, w)};
      if (c.pixels() > 0) visit(c);
    }
}

bool is_strided(const ConvExtents& e) { return e.how.stride != std::array<int64_t, 2>{1, 1}; }
int64_t element_bytes(const ir::TensorType& type) { return ir::bits(type.dtype) / 8; }

/// Sizes of the scratch: the products', the weight's copy, rows on their way to dx.
struct InputGradScratch {
  int64_t gemm = 0, weight = 0, rows = 0;  ///< bytes
  int64_t row_count = 0;                   ///< that are multiplied at a time

  InputGradScratch(const ConvExtents& e, const ir::TensorType& weights, GemmTypes product, int num_threads) {
    const int64_t n = e.group_channels(), row = n * (ir::bits(product.c_dtype) / 8);
    int64_t taps = 0, pixels = 0;
    for_classes(e, [&](const PixelClass& c) {
      taps = std::max(taps, c.taps());
      pixels = std::max(pixels, e.images * c.pixels());
    });
    row_count = is_strided(e) ? std::min(pixels, std::max<int64_t>(48, kRowsBytes / row)) : pixels;
    gemm = gemm_workspace_bytes(row_count, n, std::max<int64_t>(1, taps) * e.group_outputs(), num_threads,
                                product);
    if (!e.is_product()) weight = round_up(taps * e.group_outputs() * n * element_bytes(weights), 64);
    if (is_strided(e)) rows = round_up(row_count * row, 64);
  }
  [[nodiscard]] int64_t bytes() const { return gemm + weight + rows; }
};

class InputGrad {
 public:
  InputGrad(const KernelCall& call, const ConvExtents& e, ThreadPool& pool)
      : dy_(call.inputs[0]),
        weight_(call.inputs[1]),
        dx_(call.outputs[0]),
        e_(e),
        precision_(product_precision(call)),
        pool_(pool),
        sizes_(e_, weight_.type, {precision_, dx_.type.dtype}, pool.num_threads()),
        gemm_(call.workspace.first(static_cast<size_t>(sizes_.gemm))),
        taps_(call.workspace.data() + sizes_.gemm),
        rows_(taps_ + sizes_.weight) {}

  void run() {
    for (group_ = 0; group_ < e_.how.groups; ++group_) {
      if (e_.is_product())
        multiply_pixels();
      else
        for_classes(
            e_, [&](const PixelClass& c) { c.taps() > 0 ? multiply(c) : place(c, nullptr, 0, total(c)); });
    }
  }

 private:
  [[nodiscard]] int64_t total(const PixelClass& c) const { return e_.images * c.pixels(); }
  [[nodiscard]] int64_t pixel_bytes() const { return e_.group_channels() * element_bytes(dx_.type); }

  [[nodiscard]] GemmArgs product(int64_t rows, const ConstMatrix& a, int64_t k, const void* weight) const {
    return {.m = rows,
            .n = e_.group_channels(),
            .k = k,
            .a = a,
            .b = {weight, e_.group_channels(), 1, weight_.type.dtype},
            .c = element_at(dx_, group_ * e_.group_channels()),
            .c_row_stride = e_.channels,
            .precision = precision_,
            .c_dtype = dx_.type.dtype,
            .past_caches = beyond_caches(dx_.num_elements(), dx_.type.dtype)};
  }

  void multiply_pixels() {
    const int64_t n = e_.group_outputs();
    gemm(product(e_.rows(), pixels_of(dy_, e_.out_channels, group_ * n), n,
                 element_at(weight_, group_ * n * e_.taps())),
         pool_, gemm_);
  }

  void multiply(const PixelClass& c) {
    copy_taps_of(c);
    const Patches patches{.data = element_at(dy_, group_ * e_.group_outputs()),
                          .height = e_.out_height,
                          .width = e_.out_width,
                          .pixel = e_.out_channels,
                          .channels = e_.group_outputs(),
                          .rows = {c.down.pixels, c.across.pixels},
                          .taps = {c.down.taps, c.across.taps},
                          .first = {c.down.dy_first, c.across.dy_first},
                          .spread = {c.down.dy_spread, c.across.dy_spread}};
    GemmArgs g = product(total(c), matrix_of_patches(patches, dy_.type.dtype), patches.row_taps(), taps_);
    if (!is_strided(e_)) return gemm(g, pool_, gemm_);
    g.c = rows_;
    g.c_row_stride = e_.group_channels();
    g.past_caches = false;
    for (int64_t row = 0; row < total(c); row += sizes_.row_count) {
      g.a.first_line = row;
      g.m = std::min(sizes_.row_count, total(c) - row);
      gemm(g, pool_, gemm_);
      place(c, rows_, row, row + g.m);
    }
  }

  /// [down taps, across taps, results, channels] of a group.
  void copy_taps_of(const PixelClass& c) {
    const int64_t results = e_.group_outputs(), bytes = e_.group_channels() * element_bytes(weight_.type);
    for_blocks(pool_, c.taps() * results, kCopiedRows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t tap = i / results, o = group_ * results + i % results;
        const int64_t kh = c.down.last_tap - tap / c.across.taps * c.down.tap_step,
                      kw = c.across.last_tap - tap % c.across.taps * c.across.tap_step;
        std::memcpy(taps_ + i * bytes,
                    weight_.data + ((o * e_.kernel_height + kh) * e_.kernel_width + kw) * bytes,
                    static_cast<size_t>(bytes));
      }
    });
  }

  /// Rows [begin, end) of the class to dx, from `rows` on; zeros where that is null.
  void place(const PixelClass& c, const std::byte* rows, int64_t begin, int64_t end) {
    const auto bytes = static_cast<size_t>(pixel_bytes());
    for_blocks(pool_, end - begin, kCopiedRows, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const int64_t image = (begin + i) / c.pixels(), pixel = (begin + i) % c.pixels();
        const int64_t h = c.down.first + pixel / c.across.pixels * c.down.stride,
                      w = c.across.first + pixel % c.across.pixels * c.across.stride;
        std::byte* at = element_at(
            dx_, ((image * e_.height + h) * e_.width + w) * e_.channels + group_ * e_.group_channels());
        if (rows == nullptr)
          std::memset(at, 0, bytes);
        else
          std::memcpy(at, rows + i * pixel_bytes(), bytes);
      }
    });
  }

  const TensorRef &dy_, &weight_, &dx_;
  const ConvExtents e_;
  const Precision precision_;
  ThreadPool& pool_;
  const InputGradScratch sizes_;
  std::span<std::byte> gemm_;
  std::byte *taps_, *rows_;
  int64_t group_ = 0;
};

int64_t workspace_bytes(const ir::OpTypes& t, int num_threads) {
  const ConvExtents e = ops::conv_extents(ConvOp::kInputGrad, t);
  if (sums_directly(e)) return depthwise_bytes(e, num_threads);
  return InputGradScratch(e, t.inputs[1], product_types(t), num_threads).bytes();
}

void conv2d_input_grad(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &dy = call.inputs[0], &weight = call.inputs[1], &dx = call.outputs[0];
  const ConvExtents e = extents_of(ConvOp::kInputGrad, call);
  if (sums_directly(e))
    return depthwise_input_grad(e, dy, weight, dx, product_precision(call), pool, call.workspace);
  InputGrad(call, e, pool).run();
}

}  // namespace

std::span<const Kernel> conv2d_input_kernels() {
  static constexpr Kernel kernels[] = {{.op = "conv2d_input_grad",
                                        .run = conv2d_input_grad,
                                        .workspace_bytes = workspace_bytes,
                                        .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
