// Codes and scales of an operand as numbers again, row by row: bf16 holds each exactly.
#include <algorithm>
#include <span>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/operands.h"
#include "base/at.h"
#include "ops/scaled_operand.h"

namespace plimsoll::cpu {
namespace {

/// Columns that a thread reads at once: whole blocks of every scheme.
constexpr int64_t kPieceCols = 1024;

void dequantize_operand(const KernelCall& call, ThreadPool& pool) {
  const numerics::Scheme scheme = ops::scheme_of(call.op->attrs, "scheme");
  const std::byte *const codes = call.inputs[0].data, *const scales = call.inputs[1].data;
  const TensorRef& x = call.outputs[0];
  const int64_t rows = x.shape().num_rows(), cols = x.shape().dim(-1);
  const int64_t width = ir::bits(x.type.dtype) / 8;
  for_row_blocks(pool, rows, cols, [&](int64_t begin, int64_t end) {
    uint16_t low[kPieceCols];
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t col = 0; col < cols; col += kPieceCols) {
        const int64_t n = std::min(kPieceCols, cols - col);
        std::byte* const to = x.data + (r * cols + col) * width;
        const bool is_bf16 = x.type.dtype == ir::DType::kBf16;
        uint16_t* const numbers = is_bf16 ? reinterpret_cast<uint16_t*>(to) : low;
        ops::dequantize_codes(scheme, codes, scales, cols, r, col, {numbers, at(n)});
        if (!is_bf16) widen(low, ir::DType::kBf16, reinterpret_cast<float*>(to), n);
      }
    }
  });
}

}  // namespace

std::span<const Kernel> dequantize_operand_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "dequantize_operand", .run = dequantize_operand, .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
