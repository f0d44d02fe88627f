// Pixels to floating numbers.
#include "ops/normalize_pixels.h"

#include "backends/cuda/kernels/elementwise/normalize_pixels_args.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

/// Pixels of a block: many against the table that it fills.
constexpr int64_t kPixelsOfBlock = 16384;

Status normalize_pixels(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  const TensorRef& pixels = call.inputs[0];
  NormalizePixels a{.pixels = pixels.as<const uint8_t>(),
                    .out = operand(call.outputs[0]),
                    .n = pixels.num_elements(),
                    .rescale = attrs.f64("rescale"),
                    .channels = static_cast<int>(pixels.shape().dim(-1))};
  static_assert(sizeof(a.mean) == sizeof(ops::ChannelNumbers::values));
  std::ranges::copy(ops::parse_channel_numbers(attrs.str("mean"))->values, a.mean);
  std::ranges::copy(ops::parse_channel_numbers(attrs.str("std"))->values, a.std);
  return stream.launch(kNormalizePixels, blocks(a.n, kPixelsOfBlock), {kThreads}, 0, a);
}

}  // namespace

std::span<const Kernel> normalize_pixels_kernels() {
  static constexpr Kernel kernels[] = {{.op = "normalize_pixels", .run = normalize_pixels}};
  return kernels;
}

}  // namespace plimsoll::cuda
