// Activations: against the references, and fused against unfused bit for bit.
#include <limits>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

// The parts [.., from .. from + size) of the last axis.
Tensor columns(const Tensor& t, int64_t from, int64_t size) {
  const int64_t cols = t.type.shape.dim(-1), rows = t.type.shape.num_rows();
  Tensor part{t.type, {}};
  part.type.shape.set_dim(-1, size);
  for (int64_t r = 0; r < rows; ++r)
    part.bits.insert(part.bits.end(), t.bits.begin() + r * cols + from,
                     t.bits.begin() + r * cols + from + size);
  return part;
}

TEST(Activation, AgainstReference) {
  expect_op({"swiglu", {normal({2, 9, 66}, 1, 3.0f)}}, 1e-6);
  expect_op({"swiglu", {normal({1, 40, 2000}, 1, 3.0f)}}, 1e-6);
  expect_op({"swiglu_grad", {normal({2, 9, 33}, 1), normal({2, 9, 66}, 2, 3.0f)}}, 1e-6);
  for (const char* which : {"tanh", "none", "sigmoid"}) {
    expect_op({"bias_gelu", {normal({2, 9, 33}, 1), normal({33}, 2)}, approximate(which)}, 1e-6);
    expect_op({"bias_gelu_grad",
               {normal({2, 9, 33}, 1), normal({2, 9, 33}, 2), normal({33}, 3)},
               approximate(which)},
              2e-6);
  }
}

TEST(Activation, SwigluGivesTheBitsOfItsParts) {
  const int64_t f = 37;
  const Tensor gate_up = normal({3, 11, 2 * f}, 1, 3.0f), dy = normal({3, 11, f}, 2);
  const Tensor gate = columns(gate_up, 0, f), up = columns(gate_up, f, f);
  for_each_isa([&](const std::string& isa) {
    const Tensor silu = run_cpu({"silu", {gate}})[0];
    expect_same_bits(run_cpu({"swiglu", {gate_up}})[0], run_cpu({"mul", {silu, up}})[0], isa + " swiglu");
    const Tensor grad = run_cpu({"swiglu_grad", {dy, gate_up}})[0];
    const Tensor d_gate = run_cpu({"silu_grad", {run_cpu({"mul", {dy, up}})[0], gate}})[0];
    expect_same_bits(columns(grad, 0, f), d_gate, isa + " d_gate");
    expect_same_bits(columns(grad, f, f), run_cpu({"mul", {dy, silu}})[0], isa + " d_up");
  });
}

TEST(Activation, BiasGeluGivesTheBitsOfItsParts) {
  const Tensor x = normal({3, 11, 37}, 1), bias = normal({37}, 2), dy = normal({3, 11, 37}, 3);
  for_each_isa([&](const std::string& isa) {
    for (const char* which : {"tanh", "none", "sigmoid"}) {
      const Attrs attrs = approximate(which);
      const Tensor sum = run_cpu({"bias_add", {x, bias}})[0];
      expect_same_bits(run_cpu({"bias_gelu", {x, bias}, attrs}), run_cpu({"gelu", {sum}, attrs}),
                       isa + which);
      expect_same_bits(run_cpu({"bias_gelu_grad", {dy, x, bias}, attrs}),
                       run_cpu({"gelu_grad", {dy, sum}, attrs}), isa + which);
    }
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
