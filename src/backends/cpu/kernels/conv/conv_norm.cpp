// Convolutions with what batch normalisation asks of their result: some images are convolved, and their
// statistics are taken or they are normalised while they lie in the caches. Products do not depend on how the
// rows are cut, and granules restart at each image, so the bits are those of the ops one after the other.
//
//   images  0 .. s      convolve ─► y ─► normalise in place      y crosses memory once
//           s .. 2 s    convolve ─► y ─► normalise in place
//           …
#include <algorithm>

#include "backends/cpu/kernels/conv/conv2d.h"
#include "backends/cpu/kernels/norm/batch_norm.h"
#include "base/units.h"

namespace plimsoll::cpu {
namespace {

/// Of y that is convolved at a time: within the third-level cache, beside the weight.
constexpr int64_t kPartBytes = 4 << 20;

/// Each part packs the weight again: [taps, results] beside y's [rows, results]. So all images at once where
/// y is small enough to stay in the caches anyway, or where a part would have too few rows.
int64_t images_at_once(const ConvExtents& e, ir::DType dtype) {
  const int64_t image_bytes = e.out_pixels() * e.out_channels * ir::bits(dtype) / 8;
  const int64_t images = std::clamp<int64_t>(kPartBytes / image_bytes, 1, e.images);
  const bool stays = e.images * image_bytes <= 2 * kPartBytes;
  return stays || images * e.out_pixels() < 2 * e.taps() ? e.images : images;
}

int64_t parts_bytes(const ir::OpTypes& types, int num_threads) {
  ConvExtents e = ops::conv_extents(ConvOp::kForward, types);
  const int64_t images = images_at_once(e, types.outputs[0].dtype), rest = e.images % images;
  int64_t bytes = 0;
  for (const int64_t count : {images, rest}) {
    if (count == 0) continue;
    e.images = count;
    bytes = std::max(bytes, convolve_bytes(e, product_types(types), num_threads));
  }
  return bytes;
}

TensorRef images_of(TensorRef x, int64_t begin, int64_t end) {
  if (!x) return x;
  x.data = element_at(x, begin * (x.num_elements() / x.shape().dim(0)));
  x.type.shape.set_dim(0, end - begin);
  return x;
}

/// finish(first image, end, their y) behind each part.
template <typename Finish>
void convolve_parts(const KernelCall& call, ThreadPool& pool, std::span<std::byte> scratch, Finish finish) {
  const ConvExtents e = extents_of(ConvOp::kForward, call);
  const int64_t step = images_at_once(e, call.outputs[0].type.dtype);
  for (int64_t begin = 0; begin < e.images; begin += step) {
    const int64_t end = std::min(e.images, begin + step);
    Convolution part{.extents = e,
                     .x = images_of(call.inputs[0], begin, end),
                     .weight = call.inputs[1],
                     .y = images_of(call.outputs[0], begin, end),
                     .precision = product_precision(call)};
    part.extents.images = end - begin;
    convolve(part, pool, scratch);
    finish(begin, end, part.y);
  }
}

// Scratch: numbers of channels or granules, then the convolution's.

int64_t coefficient_bytes(const ir::Shape& y) { return round_up(4 * y.dim(-1) * kFloatBytes, 64); }
int64_t conv2d_batch_norm_bytes(const ir::OpTypes& types, int num_threads) {
  return coefficient_bytes(types.outputs[0].shape) + parts_bytes(types, num_threads);
}

// Operands x, weight, mean, variance, norm's weight and bias, residual?.
void conv2d_batch_norm(const KernelCall& call, ThreadPool& pool) {
  const ir::Attrs& attrs = call.op->attrs;
  const BatchNormCoefficients c =
      prepare_batch_norm(call.inputs[3], call.inputs[4], call.inputs[5], attrs.f64("eps"),
                         reinterpret_cast<float*>(call.workspace.data()));
  const TensorRef residual = input_or_none(call, 6);
  const auto normalise = [&](int64_t begin, int64_t end, const TensorRef& y) {
    map_channels({.x = y,
                  .residual = images_of(residual, begin, end),
                  .y = y,
                  .sets = {y.shape().num_rows(), call.inputs[2].as<const float>(), c.scale},
                  .shift = c.shift,
                  .relu = attrs.flag("relu")},
                 pool);
  };
  const int64_t own = coefficient_bytes(call.outputs[0].shape());
  convolve_parts(call, pool, call.workspace.subspan(static_cast<size_t>(own)), normalise);
}

int64_t moment_bytes(const ir::Shape& y) { return round_up(2 * share_elements(y) * kFloatBytes, 64); }
int64_t conv2d_statistics_bytes(const ir::OpTypes& types, int num_threads) {
  return moment_bytes(types.outputs[0].shape) + parts_bytes(types, num_threads);
}

void conv2d_statistics(const KernelCall& call, ThreadPool& pool) {
  const ir::Shape& shape = call.outputs[0].shape();
  const int64_t image = share_elements(shape) / shape.dim(0);
  auto* means = reinterpret_cast<float*>(call.workspace.data());
  const auto take = [&](int64_t begin, int64_t /*end*/, const TensorRef& y) {
    channel_moments(y, means + begin * image, means + share_elements(shape) + begin * image, pool);
  };
  convolve_parts(call, pool, call.workspace.subspan(static_cast<size_t>(moment_bytes(shape))), take);
  join_channel_moments(shape, means, call.outputs[1], call.outputs[2], pool);
}

}  // namespace

std::span<const Kernel> conv_norm_kernels() {
  static constexpr Kernel kernels[] = {{.op = "conv2d_batch_norm",
                                        .run = conv2d_batch_norm,
                                        .workspace_bytes = conv2d_batch_norm_bytes,
                                        .stored_dtypes = true},
                                       {.op = "conv2d_statistics",
                                        .run = conv2d_statistics,
                                        .workspace_bytes = conv2d_statistics_bytes,
                                        .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
