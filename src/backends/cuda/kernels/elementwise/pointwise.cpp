// Expressions as the steps that the CPU runs too.
#include "backends/cpu/kernels/elementwise/pointwise_program.h"
#include "backends/cuda/kernels/elementwise/pointwise_args.h"
#include "backends/cuda/kernels/operands.h"
#include "base/at.h"
#include "base/check.h"
#include "ops/broadcast.h"

namespace plimsoll::cuda {
namespace {

static_assert(static_cast<int>(StepFunction::kClamp) == static_cast<int>(ops::Function::kClamp) &&
              static_cast<int>(StepFunction::kAdd) == static_cast<int>(ops::Function::kAdd) &&
              static_cast<int>(StepFunction::kNeg) == static_cast<int>(ops::Function::kNeg));

cpu::PointwiseProgram program_of(const ir::Attrs& attrs, size_t inputs) {
  const auto f = ops::Expression::parse(attrs.str("expr"));
  PLIMSOLL_CHECK(f.ok(), "an expression that inference has accepted");
  return {*f, static_cast<int>(inputs)};
}

Status accepts_pointwise(const ir::OpTypes& types, int /*capability*/) {
  const cpu::PointwiseProgram program = program_of(types.attrs, types.inputs.size());
  if (program.num_slots() <= kMostPointwiseSlots && program.steps().size() <= kMostPointwiseSteps &&
      program.constants().size() <= kMostPointwiseConstants)
    return Ok{};
  return Error{ErrorCode::kInvalidArgument, "an expression is too long for a CUDA card", "pointwise",
               "write it as two"};
}

Status pointwise(const KernelCall& call, Stream& stream) {
  const TensorRef& out = call.outputs[0];
  const cpu::PointwiseProgram program = program_of(call.op->attrs, call.inputs.size());
  PointwiseArgs args;
  args.out = operand(out);
  args.n = out.num_elements();
  args.num_inputs = static_cast<int>(call.inputs.size());
  args.num_steps = static_cast<int>(program.steps().size());
  args.num_constants = static_cast<int>(program.constants().size());
  const int lead = 6 - out.shape().rank();
  for (int i = 0; i < out.shape().rank(); ++i) args.extent[lead + i] = out.shape().dim(i);
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    const TensorRef& x = call.inputs[k];
    args.in[k].x = operand(x);
    const ir::Strides strides = ops::stretched_strides(x.shape(), x.strides, out.shape());
    for (int i = 0; i < out.shape().rank(); ++i) args.in[k].stride[lead + i] = strides[at(i)];
  }
  std::ranges::copy(program.constants(), args.constants);
  const auto slot = [](int16_t s) { return static_cast<unsigned char>(s); };
  for (size_t s = 0; s < program.steps().size(); ++s) {
    const cpu::PointwiseStep& step = program.steps()[s];
    args.steps[s] = {static_cast<StepFunction>(step.function), slot(step.args[0]), slot(step.args[1]),
                     slot(step.args[2]), slot(step.to)};
  }
  const auto shared = static_cast<uint32_t>(4 * program.num_slots() * kPointwiseThreads);
  return stream.launch(kPointwise, blocks(args.n, kPointwiseThreads), {kPointwiseThreads}, shared, args);
}

}  // namespace

std::span<const Kernel> pointwise_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "pointwise", .run = pointwise, .strided_inputs = 0xFFF, .accepts = accepts_pointwise}};
  return kernels;
}

}  // namespace plimsoll::cuda
