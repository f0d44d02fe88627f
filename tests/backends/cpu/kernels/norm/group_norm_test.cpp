// Group normalisation: against the references, and a batch split into micro-batches.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/sequences.h"

namespace plimsoll::cpu::fixtures {
namespace {

struct Grouped {
  Shape x;
  int64_t groups;
  Shape row() const { return Shape{x.dim(-1)}; }
  Attrs attrs() const { return {{"groups", groups}, {"eps", 1e-5}}; }
  Tensor rows() const { return normal(x, 1, 2.0F); }
  Tensor dy() const { return normal(x, 2); }
  Tensor weight() const { return normal(row(), 4); }
  Tensor bias() const { return normal(row(), 5); }
};

const Grouped kGroupNormCases[] = {
    {{2, 3, 5}, 1}, {{2, 3, 5, 33}, 11}, {{3, 20, 20, 64}, 32}, {{2, 2, 2, 300}, 2}, {{2, 7, 6}, 6}};

TEST(GroupNorm, AgainstReference) {
  for (const Grouped& c : kGroupNormCases) {
    const OpRun forward{"group_norm", {c.rows(), c.weight(), c.bias()}, c.attrs()};
    expect_op(forward, 1e-5);  // means are near zero
    const auto y = run_cpu(forward);
    std::vector<Tensor> in{c.dy(), c.rows(), c.weight(), y[1], y[2]};
    expect_op({"group_norm_grad", in}, 5e-6);
    expect_op({"group_norm_grad", in, {{"frozen", true}}}, 5e-6);
    in.insert(in.end(), {c.weight(), c.bias()});
    expect_op({"group_norm_grad", in}, 5e-6);
  }
}

TEST(GroupNorm, ShortRows) {
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const double step = dtype == DType::kBf16 ? kBf16Step : kF16Step;
    const Grouped& c = kGroupNormCases[1];
    const Tensor x = as(dtype, c.rows());
    const OpRun forward{"group_norm", {x, as(dtype, c.weight()), c.bias()}, c.attrs()};
    expect_op(forward, step);
    const auto y = run_cpu(forward);
    expect_op({"group_norm_grad", {as(dtype, c.dy()), x, c.weight(), y[1], y[2]}}, step);
    expect_op({"group_norm_grad", {c.dy(), x, as(dtype, c.weight()), y[1], y[2], as(dtype, c.bias())}}, step);
  }
}

TEST(GroupNorm, DoesNotDependOnTheSplitIntoMicroBatches) {
  const Grouped c{{3, 20, 15, 20}, 5};
  const Tensor x = c.rows(), dy = c.dy();
  for_each_isa([&](const std::string& isa) {
    const auto y = run_cpu({"group_norm", {x, c.weight(), c.bias()}, c.attrs()});
    const auto whole = run_cpu({"group_norm_grad", {dy, x, c.weight(), y[1], y[2]}});
    std::vector<Tensor> acc{absent(), absent()};
    for (int64_t s = 0; s < 3; ++s) {
      const Tensor part = sequences(x, s, s + 1);
      const auto of_part = run_cpu({"group_norm", {part, c.weight(), c.bias()}, c.attrs()});
      expect_same_bits(of_part[0], sequences(y[0], s, s + 1), isa);
      std::vector<Tensor> in{sequences(dy, s, s + 1), part, c.weight(), of_part[1], of_part[2]};
      if (s > 0) in.insert(in.end(), acc.begin(), acc.end());
      const auto sums = run_cpu({"group_norm_grad", in});
      acc = {sums[1], sums[2]};
    }
    expect_same_bits(acc, {whole[1], whole[2]}, isa);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
