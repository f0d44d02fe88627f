// Weights in few bits for tests of kernels that read them, and the numbers that they stand for.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "backends/cpu/kernel_harness.h"
#include "ops/block_values.h"

namespace plimsoll::cpu::fixtures {

/// A value of a block type and the numbers that it stands for.
struct QuantizedWeight {
  Tensor coded, numbers;
};

inline QuantizedWeight quantized_weight(ir::DType dtype, int64_t rows, int64_t cols) {
  QuantizedWeight w{{{dtype, {rows, cols}}, {}}, normal({rows, cols}, 7)};
  const ir::TensorType& type = w.coded.type;
  std::vector<std::byte>& storage = w.coded.storage;
  const auto n = static_cast<size_t>(rows * cols);
  const auto block = static_cast<size_t>(ops::quantized_block(type));
  std::vector<float> x(n), scales((n + block - 1) / block);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(w.numbers.value(i));
  storage.resize(static_cast<size_t>(type.bytes().count));
  ops::quantize(type, x, std::span(storage).first((n * static_cast<size_t>(ir::bits(dtype)) + 7) / 8),
                scales);
  const std::vector<std::byte> tail = ops::stored_scales(type, scales);
  std::copy(tail.begin(), tail.end(), storage.begin() + ops::scales_offset(type));
  ops::dequantize(type, storage.data(), 0, std::span(x));
  for (size_t i = 0; i < n; ++i) w.numbers.bits[i] = std::bit_cast<uint32_t>(x[i]);
  return w;
}

/// `run` with the weight as input `at`: on the CPU the same bits as with its numbers, on the card their
/// product within the tolerance.
inline void expect_as_numbers(OpRun run, size_t at, const QuantizedWeight& w, double tolerance,
                              const std::string& what) {
  OpRun with_codes = run;
  run.inputs[at] = w.numbers;
  with_codes.inputs[at] = w.coded;
  const std::vector<Tensor> plain = run_cpu(run);
  for (const int threads : {1, 3}) expect_same_bits(run_cpu(with_codes, {.threads = threads}), plain, what);
  expect_op_on_card(with_codes, run_reference(run), tolerance);
}

}  // namespace plimsoll::cpu::fixtures
