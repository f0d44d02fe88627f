// Normalisations: against the references, fused against unfused, and a batch split into micro-batches.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/sequences.h"

namespace plimsoll::cpu::fixtures {
namespace {

const Attrs kEps{{"eps", 1e-5}};

struct Norm {
  Shape x;
  Tensor rows() const { return normal(x, 1, 2.0f); }
  Tensor dy() const { return normal(x, 2); }
  Tensor residual() const { return normal(x, 3); }
  Tensor weight() const { return normal(Shape{x.dim(-1)}, 4); }
  Tensor bias() const { return normal(Shape{x.dim(-1)}, 5); }
};

const Norm kCases[] = {{{1, 5}}, {{2, 7, 33}}, {{2, 300, 20}}, {{3, 2, 4, 48}}, {{2, 40, 576}}};

TEST(Norm, Rms) {
  for (const Norm& c : kCases) {
    expect_op({"rms_norm", {c.rows(), c.weight()}, kEps}, 1e-6);
    expect_op({"add_rms_norm", {c.rows(), c.residual(), c.weight()}, kEps}, 1e-6);
    const Tensor rstd = run_cpu({"rms_norm", {c.rows(), c.weight()}, kEps})[1];
    expect_op({"rms_norm_grad", {c.dy(), c.rows(), c.weight(), rstd}}, 3e-6);
    expect_op({"rms_norm_grad", {c.dy(), c.rows(), c.weight(), rstd, c.bias()}}, 3e-6);
    expect_op({"rms_norm_grad_add", {c.dy(), c.rows(), c.weight(), rstd, c.residual()}}, 3e-6);
    expect_op({"rms_norm_grad_add", {c.dy(), c.rows(), c.weight(), rstd, c.residual(), c.bias()}}, 3e-6);
  }
}

TEST(Norm, Layer) {
  for (const Norm& c : kCases) {
    expect_op({"layer_norm", {c.rows(), c.weight(), c.bias()}, kEps}, 2e-6);
    expect_op({"add_layer_norm", {c.rows(), c.residual(), c.weight(), c.bias()}, kEps}, 2e-6);
    const auto y = run_cpu({"layer_norm", {c.rows(), c.weight(), c.bias()}, kEps});
    const std::vector<Tensor> in{c.dy(), c.rows(), c.weight(), y[1], y[2]};
    expect_op({"layer_norm_grad", in}, 3e-6);
    std::vector<Tensor> accumulating = in, fused = in;
    accumulating.insert(accumulating.end(), {c.weight(), c.bias()});
    expect_op({"layer_norm_grad", accumulating}, 3e-6);
    fused.push_back(c.residual());
    expect_op({"layer_norm_grad_add", fused}, 3e-6);
    fused.insert(fused.end(), {c.weight(), c.bias()});
    expect_op({"layer_norm_grad_add", fused}, 3e-6);
  }
}

/// Where the parameters do not learn dx is the one result, with the same bits.
TEST(Norm, FrozenGivesDxAlone) {
  const Attrs frozen{{"frozen", true}};
  for (const Norm& c : kCases) {
    const auto rms = run_cpu({"rms_norm", {c.rows(), c.weight()}, kEps});
    const auto layer = run_cpu({"layer_norm", {c.rows(), c.weight(), c.bias()}, kEps});
    const std::vector<std::pair<std::string, std::vector<Tensor>>> runs = {
        {"rms_norm_grad", {c.dy(), c.rows(), c.weight(), rms[1]}},
        {"rms_norm_grad_add", {c.dy(), c.rows(), c.weight(), rms[1], c.residual()}},
        {"layer_norm_grad", {c.dy(), c.rows(), c.weight(), layer[1], layer[2]}},
        {"layer_norm_grad_add", {c.dy(), c.rows(), c.weight(), layer[1], layer[2], c.residual()}}};
    for (const auto& [op, operands] : runs) {
      expect_op({op, operands, frozen}, 3e-6);
      const auto alone = run_cpu({op, operands, frozen});
      ASSERT_EQ(alone.size(), 1U) << op;
      expect_same_bits(alone[0], run_cpu({op, operands})[0], op);
    }
  }
}

/// The gradients of a norm: their operands, and where the parameters learn their accumulators.
struct Gradient {
  std::string op;
  std::vector<Tensor> operands, accumulators;
};

std::vector<Gradient> gradients(const Norm& c) {
  const auto rms = run_cpu({"rms_norm", {c.rows(), c.weight()}, kEps});
  const auto layer = run_cpu({"layer_norm", {c.rows(), c.weight(), c.bias()}, kEps});
  return {{"rms_norm_grad", {c.dy(), c.rows(), c.weight(), rms[1]}, {c.bias()}},
          {"rms_norm_grad_add", {c.dy(), c.rows(), c.weight(), rms[1], c.residual()}, {c.bias()}},
          {"layer_norm_grad", {c.dy(), c.rows(), c.weight(), layer[1], layer[2]}, {c.weight(), c.bias()}},
          {"layer_norm_grad_add",
           {c.dy(), c.rows(), c.weight(), layer[1], layer[2], c.residual()},
           {c.weight(), c.bias()}}};
}

/// The copy is the last result, with the bits of a cast of dx; the other results are as without it.
void expect_copy(const std::string& op, const std::vector<Tensor>& operands, const Attrs& plain,
                 DType dtype) {
  // The definition is rounded at once, and may go to the neighbour.
  const double step = 2 * (dtype == DType::kBf16 ? kBf16Step : kF16Step);
  const std::string word(ir::name(dtype));
  Attrs rounded = plain, brief = plain;
  rounded.set("rounded", word);
  brief.set("dx", word);
  expect_op({op, operands, rounded}, step);
  expect_op({op, operands, brief}, step);
  std::vector<Tensor> expected = run_cpu({op, operands, plain});
  const Tensor copy = run_cpu({"cast", {expected[0]}, {{"out", word}}})[0];
  expected.push_back(copy);
  expect_same_bits(run_cpu({op, operands, rounded}), expected, op);
  expected.front() = copy;
  expected.pop_back();
  expect_same_bits(run_cpu({op, operands, brief}), expected, op);
  if (cuda::CudaDevice* card = cuda::fixtures::card(); card != nullptr && dtype == DType::kBf16) {
    const auto got = run_on_card(*card, {op, operands, rounded});
    expect_same_bits(got.back(), bf16(got.front()), op + " (card)");
  }
}

TEST(Norm, GradientsWriteARoundedCopy) {
  for (const Norm& c :
       sizes_for<std::vector<Norm>>({{{2, 7, 33}}, {{1, 40, 64}}}, {std::begin(kCases), std::end(kCases)}))
    for (const Gradient& g : gradients(c)) {
      expect_copy(g.op, g.operands, {}, DType::kBf16);
      expect_copy(g.op, g.operands, Attrs{{"frozen", true}}, DType::kBf16);
      std::vector<Tensor> accumulating = g.operands;
      accumulating.insert(accumulating.end(), g.accumulators.begin(), g.accumulators.end());
      expect_copy(g.op, accumulating, {}, DType::kF16);
    }
}

/// Wider than what the threads of a card's block hold.
TEST(Norm, WideRowsWriteARoundedCopy) {
  const Norm c{{1, 3, 4104}};
  for (const Gradient& g : gradients(c)) expect_copy(g.op, g.operands, {}, DType::kBf16);
}

/// Wider than what the threads of a card's block hold.
TEST(Norm, WideRows) {
  const Norm c{{1, 3, 4104}};
  const Tensor rstd = run_cpu({"rms_norm", {c.rows(), c.weight()}, kEps})[1];
  expect_op({"rms_norm_grad_add", {c.dy(), c.rows(), c.weight(), rstd, c.residual()}}, 3e-6);
  const auto y = run_cpu({"layer_norm", {c.rows(), c.weight(), c.bias()}, kEps});
  expect_op({"layer_norm_grad", {c.dy(), c.rows(), c.weight(), y[1], y[2]}}, 3e-6);
}

TEST(Norm, FusedGivesTheBitsOfItsParts) {
  for (const Norm& c : kCases)
    for_each_isa([&](const std::string& isa) {
      const Tensor sum = run_cpu({"add", {c.rows(), c.residual()}})[0];
      const auto rms = run_cpu({"rms_norm", {sum, c.weight()}, kEps});
      expect_same_bits(run_cpu({"add_rms_norm", {c.rows(), c.residual(), c.weight()}, kEps}),
                       {sum, rms[0], rms[1]}, isa);
      const auto layer = run_cpu({"layer_norm", {sum, c.weight(), c.bias()}, kEps});
      expect_same_bits(run_cpu({"add_layer_norm", {c.rows(), c.residual(), c.weight(), c.bias()}, kEps}),
                       {sum, layer[0], layer[1], layer[2]}, isa);
      const auto drms = run_cpu({"rms_norm_grad", {c.dy(), sum, c.weight(), rms[1]}});
      expect_same_bits(run_cpu({"rms_norm_grad_add", {c.dy(), sum, c.weight(), rms[1], c.residual()}}),
                       {run_cpu({"add", {c.residual(), drms[0]}})[0], drms[1]}, isa);
      const auto dlayer = run_cpu({"layer_norm_grad", {c.dy(), sum, c.weight(), layer[1], layer[2]}});
      expect_same_bits(
          run_cpu({"layer_norm_grad_add", {c.dy(), sum, c.weight(), layer[1], layer[2], c.residual()}}),
          {run_cpu({"add", {c.residual(), dlayer[0]}})[0], dlayer[1], dlayer[2]}, isa);
    });
}

/// Each operand f32 or short, and y of either; the widest of x and residual is the sum's.
TEST(Norm, ShortRows) {
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    // The definition is rounded at once, and may go to the neighbour.
    const double step = 2 * (dtype == DType::kBf16 ? kBf16Step : kF16Step);
    Attrs out = kEps;
    out.set("out", std::string(ir::name(dtype)));
    for (const Norm& c : {kCases[0], kCases[1], kCases[3]}) {
      const auto brief = [&](const Tensor& t) { return as(dtype, t); };
      const Tensor x = brief(c.rows()), dy = brief(c.dy()), residual = brief(c.residual());
      expect_op({"rms_norm", {x, c.weight()}, kEps}, step);
      expect_op({"rms_norm", {c.rows(), brief(c.weight())}, out}, step);
      expect_op({"add_rms_norm", {x, residual, c.weight()}, kEps}, step);
      expect_op({"add_rms_norm", {x, c.residual(), c.weight()}, out}, step);
      expect_op({"add_layer_norm", {c.rows(), residual, c.weight(), brief(c.bias())}, out}, step);
      expect_op({"add_layer_norm", {x, residual, c.weight(), c.bias()}, kEps}, 2 * step);
      const Tensor rstd = run_cpu({"rms_norm", {x, c.weight()}, kEps})[1];
      expect_op({"rms_norm_grad", {c.dy(), x, c.weight(), rstd}}, step);
      expect_op({"rms_norm_grad_add", {dy, x, brief(c.weight()), rstd, residual, brief(c.bias())}}, step);
      const auto y = run_cpu({"layer_norm", {x, c.weight(), c.bias()}, kEps});
      expect_op({"layer_norm_grad_add", {dy, x, c.weight(), y[1], y[2], c.residual()}}, step);
      expect_op({"layer_norm_grad", {dy, c.rows(), brief(c.weight()), y[1], y[2], absent(), brief(c.bias())}},
                step);
    }
  }
}

/// What recompute relies on where the sum is short; and `out` changes how y is stored, nothing else.
TEST(Norm, ShortSumsAreNormedAsStored) {
  for (const Norm& c : kCases)
    for_each_isa([&](const std::string& isa) {
      const Tensor x = as(DType::kBf16, c.rows()), residual = as(DType::kBf16, c.residual());
      const Tensor sum = run_cpu({"add", {x, residual}})[0];
      const auto rms = run_cpu({"rms_norm", {sum, c.weight()}, kEps});
      expect_same_bits(run_cpu({"add_rms_norm", {x, residual, c.weight()}, kEps}), {sum, rms[0], rms[1]},
                       isa);
      const auto layer = run_cpu({"layer_norm", {sum, c.weight(), c.bias()}, kEps});
      expect_same_bits(run_cpu({"add_layer_norm", {x, residual, c.weight(), c.bias()}, kEps}),
                       {sum, layer[0], layer[1], layer[2]}, isa);
      Attrs out = kEps;
      out.set("out", std::string("bf16"));
      const auto wide = run_cpu({"add_rms_norm", {x, c.residual(), c.weight()}, kEps});
      const Tensor y = run_cpu({"cast", {wide[1]}, {{"out", "bf16"}}})[0];
      expect_same_bits(run_cpu({"add_rms_norm", {x, c.residual(), c.weight()}, out}), {wide[0], y, wide[2]},
                       isa);
    });
}

TEST(Norm, WeightGradientDoesNotDependOnTheSplitIntoMicroBatches) {
  const Norm c{{3, 300, 20}};
  const Tensor x = c.rows(), dy = c.dy();
  for_each_isa([&](const std::string& isa) {
    const Tensor rstd = run_cpu({"rms_norm", {x, c.weight()}, kEps})[1];
    const Tensor whole = run_cpu({"rms_norm_grad", {dy, x, c.weight(), rstd}})[1];
    Tensor acc = absent();
    for (int64_t s = 0; s < 3; ++s) {
      std::vector<Tensor> in{sequences(dy, s, s + 1), sequences(x, s, s + 1), c.weight(),
                             sequences(rstd, s, s + 1)};
      if (s > 0) in.push_back(acc);
      acc = run_cpu({"rms_norm_grad", in})[1];
    }
    expect_same_bits(acc, whole, isa);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
