// Pixels to floating numbers: a table of each channel's 256 numbers, computed in double and rounded once to
// the dtype of the result, so that results are bit-identical on all instruction sets.
#include "ops/normalize_pixels.h"

#include <cmath>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/operands.h"
#include "base/at.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kLevels = 256;

/// [channels, kLevels] in the dtype of the result, behind the same in f32.
int64_t table_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return 2 * types.inputs[0].shape.dim(-1) * kLevels * static_cast<int64_t>(sizeof(float));
}

const std::byte* fill_table(const KernelCall& call) {
  const ir::Attrs& attrs = call.op->attrs;
  const auto mean = ops::parse_channel_numbers(attrs.str("mean")),
             std = ops::parse_channel_numbers(attrs.str("std"));
  const double rescale = attrs.f64("rescale");
  const int64_t channels = call.inputs[0].shape().dim(-1), count = channels * kLevels;
  auto* table = reinterpret_cast<float*>(call.workspace.data());
  for (int64_t i = 0; i < count; ++i) {
    const size_t c = at(i / kLevels);
    const auto level = static_cast<double>(i % kLevels);
    table[i] = static_cast<float>((level * rescale - mean->values[c]) / std->values[c]);
  }
  const ir::DType dtype = call.outputs[0].type.dtype;
  if (dtype == ir::DType::kF32) return call.workspace.data();
  round_to(table, table + count, dtype, count);
  return reinterpret_cast<const std::byte*>(table + count);
}

template <class Element>
void look_up(const uint8_t* pixels, const std::byte* bytes, int64_t channels, std::byte* to, int64_t begin,
             int64_t end) {
  const auto* table = reinterpret_cast<const Element*>(bytes);
  auto* y = reinterpret_cast<Element*>(to);
  for (int64_t i = begin * channels; i < end * channels; i += channels)
    for (int64_t c = 0; c < channels; ++c) y[i + c] = table[c * kLevels + pixels[i + c]];
}

void normalize_pixels(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &x = call.inputs[0], &y = call.outputs[0];
  const std::byte* table = fill_table(call);
  const int64_t channels = x.shape().dim(-1);
  const auto run = y.type.dtype == ir::DType::kF32 ? look_up<float> : look_up<uint16_t>;
  for_row_blocks(pool, x.shape().num_rows(), channels, [&](int64_t begin, int64_t end) {
    run(x.as<const uint8_t>(), table, channels, y.data, begin, end);
  });
}

constexpr Kernel kNormalizePixelsKernels[] = {{.op = "normalize_pixels",
                                               .run = normalize_pixels,
                                               .workspace_bytes = table_bytes,
                                               .stored_dtypes = true}};

}  // namespace

std::span<const Kernel> normalize_pixels_kernels() { return kNormalizePixelsKernels; }

}  // namespace plimsoll::cpu
