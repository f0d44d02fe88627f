// Convolutions by their shapes, for the tests of their kernels.
#pragma once

#include "backends/cpu/kernel_harness.h"
#include "ops/conv2d.h"

namespace plimsoll::cpu::fixtures {

/// A convolution by its shapes; runs of the op and of both gradients.
struct ConvCase {
  Shape x, weight;
  ops::Conv2d how = {};
  bool has_bias = false;

  [[nodiscard]] Attrs attrs() const {
    const auto pair = [](const auto& p) { return std::vector<int64_t>{p[0], p[1]}; };
    return {{"stride", pair(how.stride)},
            {"padding", pair(how.padding)},
            {"dilation", pair(how.dilation)},
            {"groups", how.groups}};
  }
  [[nodiscard]] Shape y() const {
    const OpRun run{"conv2d", {normal(x, 1), normal(weight, 2)}, attrs()};
    return types_of(run, make_op(run)).outputs[0].shape;
  }
  [[nodiscard]] OpRun forward() const {
    OpRun run{"conv2d", {normal(x, 1), normal(weight, 2)}, attrs()};
    if (has_bias) run.inputs.push_back(normal({weight.dim(0)}, 3));
    return run;
  }
  [[nodiscard]] OpRun input_grad() const {
    OpRun run{"conv2d_input_grad", {normal(y(), 4), normal(weight, 2)}, attrs()};
    run.attrs.set("size", std::vector<int64_t>{x.dim(1), x.dim(2)});
    return run;
  }
  [[nodiscard]] OpRun weight_grad(bool has_acc) const {
    OpRun run{"conv2d_weight_grad", {normal(x, 1), normal(y(), 4)}, attrs()};
    run.attrs.set("kernel", std::vector<int64_t>{weight.dim(1), weight.dim(2)});
    if (has_acc) run.inputs.push_back(normal(weight, 5));
    return run;
  }
};

/// The op and its gradients in a short precision, from f32 operands and from stored ones.
inline void expect_stored_dtypes(const std::vector<ConvCase>& cases) {
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const double step = dtype == DType::kBf16 ? kBf16Step : kF16Step;
    const std::string name(ir::name(dtype));
    for (const ConvCase& c : cases)
      for (OpRun run : {c.forward(), c.input_grad(), c.weight_grad(false), c.weight_grad(true)}) {
        run.attrs.set("precision", name);
        if (run.op != "conv2d_weight_grad") run.attrs.set("out", name);
        expect_op(run, 2 * step);
        for (size_t i = 0; i < 2; ++i) run.inputs[i] = as(dtype, run.inputs[i]);
        expect_op(run, 2 * step);
      }
  }
}

/// The weight's gradient of two images, one continuing the other's, has the bits of both at once.
inline void expect_images_one_at_a_time(const ConvCase& both) {
  const OpRun all = both.weight_grad(false);
  const auto image = [](const Tensor& t, size_t i) {
    Tensor one{t.type, {}};
    one.type.shape.set_dim(0, 1);
    const auto size = static_cast<std::ptrdiff_t>(t.bits.size() / 2),
               at = static_cast<std::ptrdiff_t>(i) * size;
    one.bits.assign(t.bits.begin() + at, t.bits.begin() + at + size);
    return one;
  };
  for (const std::string precision : {"f32", "bf16"})
    for_each_isa([&](const std::string& isa) {
      OpRun run = all;
      if (precision != "f32") run.attrs.set("precision", precision);
      OpRun first = run, second = run;
      first.inputs = {image(all.inputs[0], 0), image(all.inputs[1], 0)};
      second.inputs = {image(all.inputs[0], 1), image(all.inputs[1], 1), run_cpu(first)[0]};
      expect_same_bits(run_cpu(run), run_cpu(second), isa + " " + precision);
    });
}

}  // namespace plimsoll::cpu::fixtures
