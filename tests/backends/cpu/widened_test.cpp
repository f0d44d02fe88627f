// Kernels on bf16 and f16 operands: the reference's values to the rounding of the result, whether the kernel
// takes such operands itself or has them widened; and the casts.
#include "backends/cpu/widened.h"

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

Tensor f16(const Tensor& t) { return as(DType::kF16, t); }

TEST(Cast, EachWay) {
  for (const Shape s : {Shape{1}, Shape{3, 7}, Shape{2, 5, 4001}}) {
    expect_op({"cast", {normal(s, 1)}, {{"out", "bf16"}}}, kBf16Step);
    expect_op({"cast", {normal(s, 2)}, {{"out", "f16"}}}, kF16Step);
    expect_op({"cast", {bf16(normal(s, 3))}}, 0);
    expect_op({"cast", {f16(normal(s, 4))}}, 0);
    expect_op({"cast", {f16(normal(s, 5))}, {{"out", "bf16"}}}, kBf16Step);
    expect_op({"cast", {bf16(normal(s, 6))}, {{"out", "f16"}}}, kF16Step);
  }
}

// Every sign, exponent and upper mantissa, below, at and above the middle to the next number.
TEST(Cast, HasTheCpusBitsOnACard) {
  if (cuda::fixtures::card() == nullptr) GTEST_SKIP() << "no card";
  Tensor x{{DType::kF32, Shape{1 << 16, 5}}, {}};
  for (uint32_t upper = 0; upper < 1U << 16; ++upper)
    for (const uint32_t lower : {0U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
      x.bits.push_back(upper << 16 | lower);
  for (const char* dtype : {"bf16", "f16"}) {
    const OpRun run{"cast", {x}, {{"out", std::string(dtype)}}};
    const Tensor card = run_on_card(*cuda::fixtures::card(), run)[0], cpu = run_cpu(run)[0];
    int64_t apart = 0;
    for (size_t i = 0; i < cpu.bits.size(); ++i)
      if (card.bits[i] != cpu.bits[i] && !(std::isnan(card.value(i)) && std::isnan(cpu.value(i)))) ++apart;
    EXPECT_EQ(apart, 0) << dtype;
  }
}

TEST(Cast, RoundsTiesToEven) {
  const Tensor x = floats(Shape{3}, {1.0F + 0x1p-8F, 1.0F + 0x3p-8F, -1.0F - 0x1p-8F});
  for_each_isa([&](const std::string&) {
    const Tensor y = run_cpu({"cast", {x}, {{"out", "bf16"}}})[0];
    EXPECT_EQ(y.bits, (std::vector<uint32_t>{0x3F80, 0x3F82, 0xBF80}));
  });
}

TEST(Widened, ElementwiseAndNorms) {
  const Shape s{2, 9, 96};
  expect_op({"add", {bf16(normal(s, 1)), bf16(normal(s, 2))}}, kBf16Step);
  expect_op({"add", {bf16(normal(s, 1)), normal(s, 2)}}, 1e-6);
  expect_op({"mul", {f16(normal(s, 1)), f16(normal(s, 2))}}, kF16Step);
  expect_op({"swiglu", {bf16(normal(s, 3))}}, kBf16Step);
  expect_op({"swiglu_grad", {normal(Shape{2, 9, 48}, 4), bf16(normal(s, 5))}}, kBf16Step);
  expect_op({"rms_norm", {bf16(normal(s, 6)), normal(Shape{96}, 7)}, {{"eps", 1e-6}}}, kBf16Step);
  expect_op({"add_rms_norm", {bf16(normal(s, 6)), normal(s, 8), normal(Shape{96}, 7)}, {{"eps", 1e-6}}},
            1e-5);
}

/// Kernels that take stored dtypes, alone and where an operand is of another one.
TEST(Stored, ActivationsRotationAndSums) {
  const Shape s{2, 9, 96}, half{2, 9, 48};
  const Attrs tanh{{"approximate", std::string("tanh")}};
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const double step = dtype == DType::kBf16 ? kBf16Step : kF16Step;
    const auto brief = [&](const Shape& shape, unsigned seed) { return as(dtype, normal(shape, seed)); };
    expect_op({"swiglu", {brief(s, 1)}}, step);
    expect_op({"swiglu_grad", {brief(half, 2), brief(s, 3)}}, step);
    expect_op({"bias_gelu", {brief(s, 4), normal(Shape{96}, 5)}, tanh}, step);
    expect_op({"bias_gelu_grad", {brief(s, 6), brief(s, 7), normal(Shape{96}, 8)}, tanh}, step);
    expect_op({"bias_gelu_grad", {normal(s, 6), brief(s, 7), brief(Shape{96}, 8)}, tanh}, step);
    expect_op({"add_layer_norm",
               {brief(s, 9), normal(s, 10), normal(Shape{96}, 11), normal(Shape{96}, 12)},
               {{"eps", 1e-5}}},
              1e-5);
    const Attrs packed{{"heads", int64_t{3}}, {"head_dim", int64_t{16}}, {"inverse", true}};
    expect_op({"rope_packed", {brief(s, 13), normal(Shape{1, 9, 16}, 14)}, packed}, step);
  }
}

/// To the bit what f32 gives of the same values, rounded once; rows longer than what is widened at a time.
TEST(Stored, ElementwiseIsF32RoundedOnce) {
  const Attrs drops{{"p", 0.3}, {"key", int64_t{4}}};
  const Tensor random = ints({4}, {12345, -6789, 3, 1000});
  const auto rounded = [](const Tensor& f32, DType dtype) {
    return run_cpu({"cast", {f32}, {{"out", std::string(ir::name(dtype))}}})[0];
  };
  const auto widened = [](const Tensor& t) {
    return t.type.dtype == DType::kF32 || t.type.dtype == DType::kI32 ? t : run_cpu({"cast", {t}})[0];
  };
  for (const Shape& s : {Shape{3, 7}, Shape{2, 3, 2501}})
    for (const DType dtype : {DType::kBf16, DType::kF16}) {
      const Tensor x = as(dtype, normal(s, 1)), y = as(dtype, normal(s, 2)), b = normal(Shape{s.dim(-1)}, 3);
      const Attrs tanh{{"approximate", std::string("tanh")}};
      const std::vector<OpRun> runs = {{"add", {x, y}},
                                       {"mul", {x, y}},
                                       {"silu", {x}},
                                       {"silu_grad", {y, x}},
                                       {"gelu", {x}, tanh},
                                       {"gelu_grad", {y, x}, tanh},
                                       {"scale", {x, scalar(0.3F)}},
                                       {"bias_add", {x, b}},
                                       {"bias_add", {x, as(dtype, b)}},
                                       {"dropout", {x, random}, drops}};
      for (const OpRun& run : runs) {
        OpRun wide = run;
        for (Tensor& t : wide.inputs) t = widened(t);
        for_each_isa([&](const std::string& isa) {
          const Tensor expected = rounded(run_cpu(wide, {.threads = 1})[0], dtype);
          expect_same_bits(run_cpu(run, {.threads = 1})[0], expected, run.op + " " + isa);
          expect_same_bits(run_cpu(run, {.threads = 3})[0], expected, run.op + " " + isa);
        });
      }
      expect_same_bits(run_cpu({"add", {x, widened(y)}})[0], run_cpu({"add", {widened(x), widened(y)}})[0],
                       "a mixture");
    }
}

TEST(Widened, AccumulatorsAreConsumed) {
  const Tensor x = bf16(normal(Shape{2, 300, 16}, 1)), dy = bf16(normal(Shape{2, 300, 24}, 2));
  expect_op({"linear_dw", {x, dy}}, 1e-5);
  expect_op({"linear_dw", {x, dy, normal(Shape{24, 16}, 3)}}, 1e-5);
  expect_op({"linear_dw", {x, dy}, {{"out", "bf16"}}}, kBf16Step);
  expect_op({"sum_rows", {dy, bf16(normal(Shape{24}, 3))}, {{"out", "bf16"}}}, kBf16Step);
}

TEST(Widened, ViewsAndMovement) {
  const Shape s{2, 5, 4, 8};
  const Tensor table = normal(Shape{1, 5, 8}, 9);
  expect_op({"rope", {bf16(normal(s, 1)), table}, {{"inverse", false}}}, kBf16Step);
  expect_op({"copy", {bf16(normal(s, 2))}}, 0);
  expect_op({"concat", {f16(normal(Shape{3, 5}, 3)), f16(normal(Shape{3, 2}, 4))}}, 0);
  expect_op({"embedding", {bf16(normal(Shape{11, 6}, 5)), indices(Shape{2, 7}, 11, 6)}}, 0);
}

TEST(Widened, AttentionAndUpdate) {
  const Attrs attention{{"heads", int64_t{2}}, {"kv_heads", int64_t{1}}, {"head_dim", int64_t{16}},
                        {"scale", 0.25},       {"causal", true},         {"window", int64_t{0}}};
  expect_op({"attention_packed", {bf16(normal(Shape{2, 20, 64}, 1))}, attention}, kBf16Step);
  const Tensor groups = floats(Shape{1, 8}, {0.99F, 0.1F, 0.999F, 0.001F, 1e-8F, 0.01F, 1.0F, 0.0F});
  const Shape s{5, 33};
  Tensor v = normal(s, 4);
  for (uint32_t& bits : v.bits) bits &= 0x7FFFFFFFU;
  expect_op({"adamw",
             {bf16(normal(s, 1)), bf16(normal(s, 2)), normal(s, 3), v, scalar(0.5F), groups},
             {{"group", int64_t{0}}}},
            2 * kBf16Step);
}

/// The scratch is what the sizes say, and kernels that take stored dtypes want none of it.
TEST(Widened, AsksForItsScratch) {
  const ir::Attrs attrs;
  const ir::OpTypes types{
      "add", {{DType::kBf16, Shape{64}}, {DType::kF32, Shape{64}}}, {{DType::kF32, Shape{64}}}, attrs};
  const Kernel plain{.op = "add"}, own{.op = "add", .stored_dtypes = true};
  EXPECT_EQ(kernel_workspace_bytes(plain, types, 2) % runtime::kAlignment, 0);
  EXPECT_GE(kernel_workspace_bytes(plain, types, 2), 64 * 4);
  EXPECT_EQ(kernel_workspace_bytes(own, types, 2), 0);
  const auto scratch_bytes = [&](uint32_t stored_inputs) {
    return kernel_workspace_bytes({.op = "add", .stored_inputs = stored_inputs}, types, 2);
  };
  EXPECT_EQ(scratch_bytes(0b1), 0);
  EXPECT_GE(scratch_bytes(0b10), 64 * 4);
  EXPECT_GE(scratch_bytes(0b11), 64 * 4);  // of two dtypes
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
