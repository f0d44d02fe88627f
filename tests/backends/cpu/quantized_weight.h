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
  ir::TensorType type;
  std::vector<std::byte> storage;
  Tensor numbers;
};

inline QuantizedWeight quantized_weight(ir::DType dtype, int64_t rows, int64_t cols) {
  QuantizedWeight w{{dtype, {rows, cols}}, {}, normal({rows, cols}, 7)};
  const auto n = static_cast<size_t>(rows * cols);
  const auto block = static_cast<size_t>(ops::quantized_block(w.type));
  std::vector<float> x(n), scales((n + block - 1) / block);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(w.numbers.value(i));
  w.storage.resize(static_cast<size_t>(w.type.bytes().count));
  ops::quantize(w.type, x, std::span(w.storage).first((n * static_cast<size_t>(ir::bits(dtype)) + 7) / 8),
                scales);
  const std::vector<std::byte> tail = ops::stored_scales(w.type, scales);
  std::copy(tail.begin(), tail.end(), w.storage.begin() + ops::scales_offset(w.type));
  ops::dequantize(w.type, w.storage.data(), 0, std::span(x));
  for (size_t i = 0; i < n; ++i) w.numbers.bits[i] = std::bit_cast<uint32_t>(x[i]);
  return w;
}

/// The bits of the op's first result where input `at` is the weight, whose tensor in `run` has its type
/// alone.
inline std::vector<uint32_t> run_with_quantized(const OpRun& run, size_t at, const QuantizedWeight& w,
                                                int threads) {
  const ir::Op op = make_op(run);
  const ir::OpTypes types = types_of(run, op);
  Memories memory;
  std::vector<std::byte> storage = w.storage;
  storage.reserve(storage.size() + 64);
  std::vector<runtime::TensorRef> in;
  for (size_t i = 0; i < run.inputs.size(); ++i)
    in.push_back(i == at ? runtime::TensorRef{storage.data(), w.type, ir::dense_strides(w.type.shape)}
                         : place(run.inputs[i], false, memory));
  std::vector<runtime::TensorRef> out = {place(Tensor{types.outputs[0], {}}, false, memory)};
  CpuDevice& cpu = device(threads);
  const auto bytes = static_cast<size_t>(cpu.target().workspace_bytes(types));
  Guarded workspace((bytes + 3) / 4);
  EXPECT_TRUE(
      cpu.launch({&op, in, out, {reinterpret_cast<std::byte*>(workspace.data()), bytes}}, ir::Queue::kCompute)
          .ok());
  EXPECT_TRUE(workspace.intact());
  for (const auto& each : memory) EXPECT_TRUE(each->intact());
  return {out[0].as<uint32_t>(), out[0].as<uint32_t>() + out[0].num_elements()};
}

}  // namespace plimsoll::cpu::fixtures
