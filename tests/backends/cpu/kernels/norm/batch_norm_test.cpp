// Batch normalisation: against the references, over cuts of the rows, in f32 and in short dtypes.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/sequences.h"

namespace plimsoll::cpu::fixtures {
namespace {

Attrs batch_norm_attrs(bool batch, bool relu, bool frozen = false) {
  Attrs attrs{{"eps", 1e-4}};
  for (const auto& [name, value] : {std::pair{"batch", batch}, {"relu", relu}, {"frozen", frozen}})
    if (value) attrs.set(name, true);
  return attrs;
}

struct Channels {
  Shape x;
  Shape row() const { return Shape{x.dim(-1)}; }
  Tensor rows() const { return normal(x, 1, 2.0F); }
  Tensor dy() const { return normal(x, 2); }
  Tensor residual() const { return normal(x, 3); }
  Tensor result() const { return normal(x, 6); }
  Tensor weight() const { return normal(row(), 4); }
  Tensor bias() const { return normal(row(), 5); }
  /// What the statistics of `rows` are.
  std::vector<Tensor> statistics(const Tensor& of) const { return run_cpu({"batch_statistics", {of}}); }
  std::vector<Tensor> operands(const Tensor& of) const {
    const auto s = statistics(of);
    return {of, s[0], s[1], weight(), bias()};
  }
};

const Channels kBatchNormCases[] = {
    {{7, 5}}, {{2, 3, 5, 33}}, {{2, 20, 20, 64}}, {{3, 2, 2, 300}}, {{600, 20}}};

TEST(BatchNorm, Statistics) {
  for (const Channels& c : kBatchNormCases) {
    // Means are near zero, and held to their own size rather than to the standard deviation of 2.
    expect_op({"batch_statistics", {c.rows()}}, 1e-5);
    expect_op({"batch_statistics", {as(DType::kBf16, c.rows())}}, 1e-5);
  }
}

/// A mean of 40,000 standard deviations costs few digits of the variance: differences are squared.
TEST(BatchNorm, StatisticsFarFromZero) {
  std::vector<float> values;
  for (int i = 0; i < 4096; ++i) values.push_back(1e4F + static_cast<float>(i % 7) / 8);
  expect_op({"batch_statistics", {floats({2, 32, 32, 2}, values)}}, 1e-5);
}

TEST(BatchNorm, Application) {
  for (const Channels& c : kBatchNormCases)
    for (const bool relu : {false, true}) {
      std::vector<Tensor> in = c.operands(c.rows());
      expect_op({"batch_norm", in, batch_norm_attrs(true, relu)}, 2e-6);
      in.push_back(c.residual());
      expect_op({"batch_norm", in, batch_norm_attrs(false, relu)}, 2e-6);
    }
}

TEST(BatchNorm, Gradient) {
  for (const Channels& c : kBatchNormCases)
    for (const bool batch : {false, true})
      for (const bool relu : {false, true}) {
        std::vector<Tensor> in = c.operands(c.rows());
        in.insert(in.begin(), c.dy());
        expect_op({"batch_norm_grad", in, batch_norm_attrs(batch, relu)}, 5e-6);
        expect_op({"batch_norm_grad", in, batch_norm_attrs(batch, relu, true)}, 5e-6);
        in.insert(in.end(), {c.weight(), c.bias()});
        expect_op({"batch_norm_grad", in, batch_norm_attrs(batch, relu)}, 5e-6);
      }
}

TEST(BatchNorm, GradientWithAResidual) {
  for (const Channels& c : kBatchNormCases)
    for (const bool batch : {false, true}) {
      std::vector<Tensor> in = c.operands(c.rows());
      in.push_back(c.residual());
      const Tensor y = run_cpu({"batch_norm", in, batch_norm_attrs(batch, true)})[0];
      std::vector<Tensor> grad{c.dy(), in[0], in[1], in[2], in[3], y};
      expect_op({"batch_norm_add_grad", grad, batch_norm_attrs(batch, false)}, 5e-6);
      expect_op({"batch_norm_add_grad", grad, batch_norm_attrs(batch, false, true)}, 5e-6);
      grad.insert(grad.end(), {c.weight(), c.bias()});
      expect_op({"batch_norm_add_grad", grad, batch_norm_attrs(batch, false)}, 5e-6);
      grad.push_back(c.residual());
      expect_op({"batch_norm_add_grad", grad, batch_norm_attrs(batch, false)}, 5e-6);
    }
}

/// The addition that is taken in gives the bits of the two ops.
TEST(BatchNorm, ASecondCotangentIsAddedFirst) {
  const Channels c{{2, 20, 20, 64}};
  for_each_isa([&](const std::string& isa) {
    const std::vector<Tensor> in = c.operands(c.rows());
    const auto grad = [&](const Tensor& dy, const Tensor& dy2) {
      return run_cpu({"batch_norm_add_grad",
                      {dy, in[0], in[1], in[2], in[3], c.result(), absent(), absent(), dy2},
                      batch_norm_attrs(true, false)});
    };
    const Tensor sum = run_cpu({"add", {c.dy(), c.residual()}})[0];
    expect_same_bits(grad(c.dy(), c.residual()), grad(sum, absent()), isa);
  });
}

/// relu passes the same gradient whether it is told by x or, with a residual of zeros, by y.
TEST(BatchNorm, BothWaysToSeeWhatReluLetPassAgree) {
  const Channels c{{2, 20, 20, 64}};
  for_each_isa([&](const std::string& isa) {
    std::vector<Tensor> in = c.operands(c.rows());
    const Tensor y = run_cpu({"batch_norm", in, batch_norm_attrs(true, true)})[0];
    const auto by_y = run_cpu(
        {"batch_norm_add_grad", {c.dy(), in[0], in[1], in[2], in[3], y}, batch_norm_attrs(true, false)});
    in.insert(in.begin(), c.dy());
    const auto by_x = run_cpu({"batch_norm_grad", in, batch_norm_attrs(true, true)});
    expect_same_bits({by_y[0], by_y[2], by_y[3]}, by_x, isa);
  });
}

TEST(BatchNorm, WhatIsNoNumberStaysSo) {
  Tensor x = normal({4, 3}, 1);
  x.bits[4] = std::bit_cast<uint32_t>(std::nanf(""));
  const Tensor row = floats({3}, {1, 1, 1});
  const Tensor y = run_cpu({"batch_norm", {x, row, row, row, row}, batch_norm_attrs(false, true)})[0];
  EXPECT_TRUE(std::isnan(y.f32(4)));
}

/// All operands of one short dtype, and mixtures.
TEST(BatchNorm, ShortRows) {
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const double step = dtype == DType::kBf16 ? kBf16Step : kF16Step;
    for (const Channels& c : {kBatchNormCases[0], kBatchNormCases[1], kBatchNormCases[2]}) {
      const auto brief = [&](const Tensor& t) { return as(dtype, t); };
      const Tensor x = brief(c.rows()), dy = brief(c.dy());
      const std::vector<Tensor> in = c.operands(x);
      expect_op({"batch_norm", in, batch_norm_attrs(true, true)}, step);
      expect_op({"batch_norm",
                 {x, in[1], in[2], brief(in[3]), brief(in[4]), brief(c.residual())},
                 batch_norm_attrs(true, true)},
                step);
      expect_op({"batch_norm", {x, in[1], in[2], in[3], in[4], c.residual()}, batch_norm_attrs(false, false)},
                step);
      expect_op({"batch_norm_grad", {dy, x, in[1], in[2], in[3], in[4]}, batch_norm_attrs(true, true)}, step);
      expect_op({"batch_norm_grad",
                 {c.dy(), x, in[1], in[2], brief(in[3]), in[4], brief(c.bias()), absent()},
                 batch_norm_attrs(false, false)},
                step);
      const Tensor y = brief(c.residual());
      expect_op({"batch_norm_add_grad", {dy, x, in[1], in[2], in[3], y}, batch_norm_attrs(true, false)},
                step);
      expect_op(
          {"batch_norm_add_grad", {dy, x, in[1], in[2], in[3], c.residual()}, batch_norm_attrs(false, false)},
          step);
    }
  }
}

/// With given statistics the gradients of weight and bias go on over micro-batches with the same bits.
TEST(BatchNorm, GivenStatisticsDoNotDependOnTheSplitIntoMicroBatches) {
  const Channels c{{3, 20, 15, 20}};
  const Tensor x = c.rows(), dy = c.dy();
  for_each_isa([&](const std::string& isa) {
    const auto in = c.operands(x);
    const auto whole =
        run_cpu({"batch_norm_grad", {dy, x, in[1], in[2], in[3], in[4]}, batch_norm_attrs(false, true)});
    std::vector<Tensor> acc{absent(), absent()};
    for (int64_t s = 0; s < 3; ++s) {
      std::vector<Tensor> part{sequences(dy, s, s + 1), sequences(x, s, s + 1), in[1], in[2], in[3], in[4]};
      if (s > 0) part.insert(part.end(), acc.begin(), acc.end());
      const auto sums = run_cpu({"batch_norm_grad", part, batch_norm_attrs(false, true)});
      acc = {sums[1], sums[2]};
    }
    expect_same_bits(acc, {whole[1], whole[2]}, isa);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
