// Products with weights in few bits: the same bits as with the numbers that these stand for.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cpu/kernel_harness.h"
#include "ops/block_values.h"

namespace plimsoll::cpu {
namespace {

using namespace fixtures;

/// A value of a block type and the numbers that it stands for.
struct QuantizedWeight {
  ir::TensorType type;
  std::vector<std::byte> storage;
  Tensor numbers;
};

QuantizedWeight quantized_weight(ir::DType dtype, int64_t rows, int64_t cols) {
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

std::vector<uint32_t> product(const QuantizedWeight& w, const Tensor& x, const Attrs& attrs, int threads) {
  const OpRun run{"linear", {x, {w.type, {}}}, attrs};
  const ir::Op op = make_op(run);
  const ir::OpTypes types = types_of(run, op);
  Memories memory;
  std::vector<std::byte> storage = w.storage;
  storage.reserve(storage.size() + 64);
  std::vector<runtime::TensorRef> in = {place(x, false, memory),
                                        {storage.data(), w.type, ir::dense_strides(w.type.shape)}};
  std::vector<runtime::TensorRef> out = {place(Tensor{types.outputs[0], {}}, false, memory)};
  CpuDevice& cpu = device(threads);
  const auto bytes = static_cast<size_t>(cpu.target().workspace_bytes(types));
  Guarded workspace((bytes + 3) / 4);
  EXPECT_TRUE(
      cpu.launch({&op, in, out, {reinterpret_cast<std::byte*>(workspace.data()), bytes}}, ir::Queue::kCompute)
          .ok());
  EXPECT_TRUE(workspace.intact());
  EXPECT_TRUE(memory[0]->intact() && memory[1]->intact());
  return {out[0].as<uint32_t>(), out[0].as<uint32_t>() + out[0].num_elements()};
}

TEST(LinearQuantized, SameBitsAsWithItsNumbers) {
  using enum ir::DType;
  for (const ir::DType dtype : {kNf4, kNf4Double, kFp4, kFp4Double, kI8Rows})
    for (const bool transposed : {false, true})
      for (const char* precision : {"", "bf16"}) {
        const QuantizedWeight w = quantized_weight(dtype, 331, 200);
        const Tensor x = normal({2, 9, transposed ? 331 : 200}, 3);
        Attrs attrs{{"transposed", transposed}};
        if (*precision != 0) attrs.set("precision", std::string(precision));
        const std::vector<Tensor> plain = run_cpu({"linear", {x, w.numbers}, attrs});
        for (const int threads : {1, 3})
          EXPECT_EQ(product(w, x, attrs, threads), plain[0].bits)
              << ir::name(dtype) << " " << transposed << " " << precision << " " << threads;
      }
}

TEST(LinearQuantized, BandsAreOfTheResultsColumns) {
  const QuantizedWeight w = quantized_weight(ir::DType::kNf4Double, 300, 17000);
  const Tensor x = normal({2, 17000}, 3);
  EXPECT_EQ(product(w, x, {}, 2), run_cpu({"linear", {x, w.numbers}, {}})[0].bits);
}

}  // namespace
}  // namespace plimsoll::cpu
