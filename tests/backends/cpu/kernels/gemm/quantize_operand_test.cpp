// Codes, scales and largest magnitudes, to the bit those of the reference: by tiles, turned, in parallel.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

Attrs in_scheme(const char* name, bool transposed = false) {
  return {{"scheme", std::string(name)}, {"transposed", transposed}};
}

TEST(QuantizeOperand, IsTheReferenceToTheBit) {
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 33, 70}, Shape{140, 520}, Shape{600, 17}, Shape{9, 2100}})
    for (const char* name : {"e4m3", "e5m2", "fp8-block-1x128", "mxfp8", "nvfp4"})
      for (const bool transposed : {false, true}) {
        expect_op({"quantize_operand", {normal(shape, 1)}, in_scheme(name, transposed)}, 0);
        expect_op({"quantize_operand", {bf16(normal(shape, 2))}, in_scheme(name, transposed)}, 0);
      }
}

TEST(QuantizeOperand, BlocksThatSpanRows) {
  for (const Shape& shape : {Shape{3, 5}, Shape{17, 33}, Shape{140, 520}, Shape{257, 131}})
    for (const char* name : {"fp8-block-128x128", "nvfp4-16x16"})
      expect_op({"quantize_operand", {normal(shape, 3)}, in_scheme(name)}, 0);
}

TEST(QuantizeOperand, BothCopiesAtOnce) {
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 33, 70}, Shape{140, 520}, Shape{600, 17}})
    for (const char* name : {"fp8-block-1x128", "mxfp8"}) {
      Attrs both = in_scheme(name);
      both.set("both", true);
      expect_op({"quantize_operand", {bf16(normal(shape, 2))}, both}, 0);
      expect_op({"quantize_operand", {normal(shape, 3)}, both}, 0);
    }
}

/// More rows than a band of both copies has.
TEST(QuantizeOperand, BothCopiesBandByBand) {
  const Tensor x = normal({3, 230, 520}, 3);
  for (const char* name : {"fp8-block-1x128", "mxfp8"})
    for (const bool by_sequence : {false, true}) {
      const auto copies = [&](const char* which) {
        Attrs attrs{{"scheme", std::string(name)}, {which, true}};
        if (by_sequence) attrs.set("by_sequence", true);
        return run_cpu({"quantize_operand", {x}, attrs});
      };
      const auto both = copies("both"), turned = copies("transposed");
      const auto plain = run_cpu({"quantize_operand", {x}, in_scheme(name)});
      expect_same_bits(both, {plain[0], plain[1], turned[0], turned[1]}, name);
    }
}

/// Sequences shorter and longer than a tile, and than a block.
TEST(QuantizeOperand, BlocksEndWithSequences) {
  for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 33, 70}, Shape{5, 130, 40}, Shape{2, 600, 17}})
    for (const char* name : {"fp8-block-1x128", "mxfp8"})
      for (const char* copies : {"transposed", "both"}) {
        const Attrs attrs{{"scheme", std::string(name)}, {copies, true}, {"by_sequence", true}};
        expect_op({"quantize_operand", {normal(shape, 1)}, attrs}, 0);
        expect_op({"quantize_operand", {bf16(normal(shape, 2))}, attrs}, 0);
      }
}

TEST(QuantizeOperand, RoundsToBf16Before) {
  Attrs attrs = in_scheme("mxfp8");
  attrs.set("precision", std::string("bf16"));
  const Tensor x = normal({9, 70}, 4);
  expect_op({"quantize_operand", {x}, attrs}, 0);
  expect_same_bits(run_cpu({"quantize_operand", {x}, attrs}),
                   run_cpu({"quantize_operand", {bf16(x)}, in_scheme("mxfp8")}), "rounded before");
}

TEST(QuantizeOperand, TakesAScaleOfAState) {
  Attrs attrs = in_scheme("e4m3");
  attrs.set("slot", int64_t{2});
  const auto got = run_cpu({"quantize_operand", {normal({4, 9}, 5), floats({3}, {1, 2, 8})}, attrs});
  EXPECT_EQ(got[1].f32(0), 0.125F);
  expect_op({"quantize_operand", {normal({4, 9}, 5), floats({3}, {1, 2, 8})}, attrs}, 0);
}

TEST(QuantizeOperand, TransformsAndDraws) {
  const Tensor random = ints({4}, {7, 8, 9, 10});
  for (const bool transposed : {false, true})
    for (const bool hadamard : {false, true}) {
      Attrs attrs = in_scheme("nvfp4", transposed);
      attrs.set("hadamard", hadamard);
      attrs.set("stochastic", true);
      attrs.set("key", int64_t{5});
      expect_op({"quantize_operand", {normal({3, 32, 48}, 6), absent(), random}, attrs}, 0);
      expect_op({"quantize_operand", {normal({64, 528}, 7), absent(), random}, attrs}, 0);
    }
}

/// Every bf16 number, NaNs and infinities too, and f32 that are rounded on the way.
TEST(QuantizeOperand, OnACardItIsTheCpuToTheBit) {
  cuda::CudaDevice* card = cuda::fixtures::card();
  if (card == nullptr) GTEST_SKIP() << "no card";
  Tensor every{{DType::kBf16, {258, 256}}, {}};
  for (uint32_t i = 0; i < 258 * 256; ++i) every.bits.push_back(i * 40503 & 0xFFFF);
  const auto hold = [&](const Tensor& x, const Attrs& attrs, std::vector<Tensor> rest) {
    OpRun run{"quantize_operand", {x}, attrs};
    run.inputs.insert(run.inputs.end(), rest.begin(), rest.end());
    runs_on_card().push_back(run.op);
    expect_same_bits(run_on_card(*card, run), run_cpu(run), attrs.str("scheme"));
  };
  for (const char* name :
       {"e4m3", "e5m2", "fp8-block-1x128", "fp8-block-128x128", "mxfp8", "nvfp4", "nvfp4-16x16"})
    for (const bool transposed : {false, true}) {
      Attrs attrs = in_scheme(name, transposed);
      hold(every, attrs, {});
      hold(normal({1, 3}, 1), attrs, {});
      attrs.set("precision", std::string("bf16"));
      hold(normal({2, 77, 300}, 2), attrs, {});
    }
  for (const char* name : {"fp8-block-1x128", "mxfp8"})
    for (const char* copies : {"transposed", "both"}) {
      const Attrs attrs{{"scheme", std::string(name)}, {copies, true}, {"by_sequence", true}};
      hold(normal({7, 77, 40}, 4), attrs, {});
      hold(normal({2, 300, 40}, 5), attrs, {});
    }
  for (const bool transposed : {false, true})
    for (const bool hadamard : {false, true}) {
      Attrs attrs = in_scheme("nvfp4", transposed);
      attrs.set("hadamard", hadamard);
      hold(normal({5, 80, 272}, 3), attrs, {});
      attrs.set("stochastic", true);
      attrs.set("key", int64_t{77});
      hold(normal({5, 80, 272}, 3), attrs, {absent(), ints({4}, {7, 8, 9, 10})});
    }
}

/// A sequence draws what it draws in a batch by itself, in both directions.
TEST(QuantizeOperand, ASequenceDrawsTheSameInAnySplit) {
  const Tensor two = normal({2, 16, 16}, 8);
  Tensor second{{DType::kF32, {1, 16, 16}}, {two.bits.begin() + 256, two.bits.end()}};
  Tensor both = two;  // the same amax, so that the tensor's scale is the same
  both.bits[256] = second.bits[0] = std::bit_cast<uint32_t>(9.0F);
  Attrs attrs = in_scheme("nvfp4");
  attrs.set("stochastic", true);
  attrs.set("key", int64_t{5});
  const auto whole = run_cpu({"quantize_operand", {both, absent(), ints({4}, {1, 2, 3, 4})}, attrs});
  const auto part = run_cpu({"quantize_operand", {second, absent(), ints({4}, {1, 2, 3, 5})}, attrs});
  EXPECT_TRUE(std::equal(part[0].bits.begin(), part[0].bits.end(), whole[0].bits.begin() + 128));
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
