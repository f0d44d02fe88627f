// Layer scale and stochastic depth against the references.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/sequences.h"

namespace plimsoll::cpu::fixtures {
namespace {

struct Branch {
  Shape x;
  Tensor residual() const { return normal(x, 1); }
  Tensor branch() const { return normal(x, 2); }
  Tensor dy() const { return normal(x, 3); }
  Tensor scale() const { return normal(Shape{x.dim(-1)}, 4); }
  Tensor kept() const {
    Tensor t = normal(Shape{x.dim(0)}, 5);
    t.bits[0] = 0;  // a sample that is dropped
    return t;
  }
};

const Branch kLayerScaleCases[] = {{{2, 3, 5}}, {{3, 20, 20, 33}}, {{2, 300, 64}}};

TEST(LayerScale, AgainstReference) {
  for (const Branch& c : kLayerScaleCases) {
    expect_op({"scaled_add", {c.residual(), c.branch(), c.scale(), c.kept()}}, 1e-6);
    expect_op({"scaled_add", {c.residual(), c.branch(), c.scale()}}, 1e-6);
    expect_op({"scaled_add", {c.residual(), c.branch(), absent(), c.kept()}}, 1e-6);
    expect_op({"scaled_add_grad", {c.dy(), c.branch(), c.scale(), c.kept()}}, 3e-6);
    expect_op({"scaled_add_grad", {c.dy(), c.branch(), c.scale(), c.kept(), c.scale()}}, 3e-6);
    expect_op({"scaled_add_grad", {c.dy(), c.branch(), c.scale()}, {{"frozen", true}}}, 3e-6);
    expect_op({"scaled_add_grad", {c.dy(), c.branch(), absent(), c.kept()}, {{"frozen", true}}}, 3e-6);
  }
}

TEST(LayerScale, ShortRows) {
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const double step = dtype == DType::kBf16 ? kBf16Step : kF16Step;
    const Branch& c = kLayerScaleCases[1];
    const Tensor branch = as(dtype, c.branch()), scale = as(dtype, c.scale());
    expect_op({"scaled_add", {c.residual(), branch, scale, c.kept()}}, step);
    expect_op({"scaled_add", {as(dtype, c.residual()), branch, c.scale()}}, step);
    expect_op({"scaled_add_grad", {c.dy(), branch, scale, c.kept(), scale}}, step);
    expect_op({"scaled_add_grad", {as(dtype, c.dy()), branch, c.scale()}}, step);
  }
}

TEST(LayerScale, GradientDoesNotDependOnTheSplitIntoMicroBatches) {
  const Branch& c = kLayerScaleCases[1];
  for_each_isa([&](const std::string& isa) {
    const Tensor whole = run_cpu({"scaled_add_grad", {c.dy(), c.branch(), c.scale()}})[1];
    Tensor acc = absent();
    for (int64_t s = 0; s < 3; ++s)
      acc = run_cpu(
          {"scaled_add_grad",
           {sequences(c.dy(), s, s + 1), sequences(c.branch(), s, s + 1), c.scale(), absent(), acc}})[1];
    expect_same_bits(acc, whole, isa);
  });
}

TEST(LayerScale, KeptSamplesAreThoseOfTheReference) {
  const Tensor random = ints({4}, {12345, -6789, 3, 1000});
  for (const double p : {0.0, 0.1, 0.999}) {
    const OpRun run{
        "kept_samples", {random}, {{"count", int64_t{300}}, {"p", p}, {"key", int64_t{0x123456789}}}};
    expect_op(run, 1e-6);
    const auto expected = run_reference(run)[0];
    const Tensor got = run_cpu(run)[0];
    for (size_t i = 0; i < expected.data.size(); ++i)
      ASSERT_EQ(got.f32(i) == 0.0F, expected.data[i] == 0.0) << "p " << p << ", sample " << i;
  }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
