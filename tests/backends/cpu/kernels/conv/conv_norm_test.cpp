// Convolutions fused with batch normalisation: against the references, and bit for bit what the ops give one
// after the other, where images are taken together and where they are cut into parts.
#include "backends/cpu/kernels/conv/conv_cases.h"

namespace plimsoll::cpu::fixtures {
namespace {

const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> all = {
      {{2, 9, 8, 16}, {24, 3, 3, 16}, {.padding = {1, 1}}},
      {{2, 11, 13, 3}, {20, 7, 7, 3}, {.stride = {2, 2}, .padding = {3, 3}}},
      {{2, 17, 17, 18}, {33, 1, 1, 18}},
      {{2, 6, 6, 12}, {18, 3, 3, 4}, {.padding = {1, 1}, .groups = 3}},
      {{2, 7, 7, 10}, {10, 3, 3, 1}, {.padding = {1, 1}, .groups = 10}},  // depthwise
  };
  return all;
}

/// More than the kernels take at once in f32; the last part has fewer images.
const ConvCase kManyImages{{7, 80, 80, 3}, {64, 3, 3, 3}, {.padding = {1, 1}}};

OpRun statistics_of(const ConvCase& c) {
  return {"conv2d_statistics", {normal(c.x, 1), normal(c.weight, 2)}, c.attrs()};
}

OpRun normed(const ConvCase& c, bool relu, bool residual) {
  const Shape row{c.weight.dim(0)};
  OpRun run = statistics_of(c);
  run.op = "conv2d_batch_norm";
  Tensor variance = normal(row, 4);
  for (uint32_t& bits : variance.bits) bits &= 0x7fffffffU;  // its magnitude
  run.inputs.insert(run.inputs.end(), {normal(row, 3), variance, normal(row, 5), normal(row, 6)});
  if (residual) run.inputs.push_back(normal(c.y(), 7));
  run.attrs.set("eps", 1e-3);
  if (relu) run.attrs.set("relu", true);
  return run;
}

OpRun as_stored(OpRun run, DType dtype) {
  if (dtype == DType::kF32) return run;
  run.attrs.set("precision", std::string(ir::name(dtype)));
  for (size_t i = 0; i < run.inputs.size(); ++i)
    if (i < 2 || i == 6) run.inputs[i] = as(dtype, run.inputs[i]);
  return run;
}

/// What the fused op stands for.
std::vector<Tensor> apart(const OpRun& run) {
  OpRun conv{"conv2d", {run.inputs[0], run.inputs[1]}, {}};
  for (const auto& [name, value] : run.attrs.entries())
    if (name != "eps" && name != "relu") conv.attrs.set(name, value);
  const Tensor y = run_cpu(conv)[0];
  if (run.op == "conv2d_statistics") {
    const auto statistics = run_cpu({"batch_statistics", {y}});
    return {y, statistics[0], statistics[1]};
  }
  OpRun norm{"batch_norm", {y}, {{"eps", run.attrs.f64("eps")}}};
  norm.inputs.insert(norm.inputs.end(), run.inputs.begin() + 2, run.inputs.end());
  if (run.attrs.flag("relu")) norm.attrs.set("relu", true);
  return run_cpu(norm);
}

void expect_the_ops_bits(const OpRun& run) {
  for_each_isa([&](const std::string& isa) {
    const std::vector<Tensor> expected = apart(run);
    for (const int threads : {1, 3}) expect_same_bits(run_cpu(run, {.threads = threads}), expected, isa);
  });
}

TEST(ConvNorm, AgainstReference) {
  for (const ConvCase& c : cases()) {
    expect_op(statistics_of(c), 1e-4);
    for (const bool residual : {false, true}) expect_op(normed(c, residual, residual), 1e-5);
  }
}

TEST(ConvNorm, GivesTheBitsOfTheOpsOneAfterTheOther) {
  for (const ConvCase& c : cases())
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
      expect_the_ops_bits(as_stored(statistics_of(c), dtype));
      for (const bool residual : {false, true})
        expect_the_ops_bits(as_stored(normed(c, !residual, residual), dtype));
    }
}

TEST(ConvNorm, ImagesInPartsGiveTheSameBits) {
  expect_the_ops_bits(statistics_of(kManyImages));
  expect_the_ops_bits(normed(kManyImages, true, true));
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
