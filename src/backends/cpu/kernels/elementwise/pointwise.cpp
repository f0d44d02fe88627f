// Expressions: a vector loop a step, over tiles that stay in the first-level cache.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/pointwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/elementwise/pointwise-inl.h"
#include "backends/cpu/kernels/elementwise/pointwise_program.h"
#include "backends/cpu/kernels/elementwise/stored_runs.h"
#include "backends/cpu/kernels/strided_runs.h"
#include "ops/broadcast.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

void run_steps(const PointwiseStep* steps, size_t num_steps, float* const* slots, int64_t count) {
  for (size_t i = 0; i < num_steps; ++i) {
    const PointwiseStep& step = steps[i];
    const auto slot = [&](size_t k) { return slots[static_cast<size_t>(step.args[k])]; };
    pointwise_steps::run(step.function, slot(0), slot(1), slot(2), slots[static_cast<size_t>(step.to)],
                         count);
  }
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(run_steps);

constexpr size_t kMaxOperands = ops::Expression::kMaxInputs;
constexpr size_t kMaxSlots = ops::Expression::kMaxNodes + kMaxOperands + 1;

int64_t slot_bytes(int num_slots) { return num_slots * kTileElements * static_cast<int64_t>(sizeof(float)); }

ops::Expression expression_of(const ir::Attrs& attrs) {
  auto f = ops::Expression::parse(attrs.str("expr"));
  PLIMSOLL_CHECK(f.ok(), "an expression that inference has accepted");
  return *f;
}

int64_t pointwise_bytes(const ir::OpTypes& types, int num_threads) {
  const PointwiseProgram program(expression_of(types.attrs), static_cast<int>(types.inputs.size()));
  return slot_bytes(program.num_slots()) * num_threads;
}

/// One launch: where operands lie along the result's elements.
class Pointwise {
 public:
  explicit Pointwise(const KernelCall& call)
      : call_(call),
        program_(expression_of(call.op->attrs), static_cast<int>(call.inputs.size())),
        result_(call.outputs[0]),
        dispatched_(HWY_DYNAMIC_DISPATCH(run_steps)) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const TensorRef& x = call.inputs[i];
      runs_[i] = StridedRuns(result_.shape(), ops::stretched_strides(x.shape(), x.strides, result_.shape()));
    }
  }

  void run(ThreadPool& pool) {
    const int64_t total = result_.num_elements();
    pool.run(ceil_div(total, kBlockElements), [&](int64_t block, int thread) {
      std::array<float*, kMaxSlots> slots;
      auto* room =
          reinterpret_cast<float*>(call_.workspace.data() + thread * slot_bytes(program_.num_slots()));
      for (int i = 0; i < program_.num_slots(); ++i) slots[at(i)] = room + i * kTileElements;
      const std::span<const float> constants = program_.constants();
      for (size_t i = 0; i < constants.size(); ++i)
        std::fill_n(slots[at(program_.result_slot()) + 1 + i], kTileElements, constants[i]);
      const int64_t end = std::min(total, (block + 1) * kBlockElements);
      for (int64_t i = block * kBlockElements; i < end; i += kTileElements)
        run_tile(room, slots.data(), i, std::min(kTileElements, end - i));
    });
  }

 private:
  void run_tile(float* room, float** slots, int64_t begin, int64_t count) const {
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const TensorRef& x = call_.inputs[i];
      if (x.type.dtype == ir::DType::kF32 && runs_[i].is_dense()) {
        slots[i] = x.as<float>() + begin;
        continue;
      }
      slots[i] = room + static_cast<int64_t>(i) * kTileElements;
      const int64_t bytes = element_bytes(x.type.dtype);
      runs_[i].for_runs(begin, begin + count, [&](int64_t offset, int64_t first, int64_t n) {
        read_as_f32(x.data + offset * bytes, x.type.dtype, runs_[i].stride(), n, slots[i] + first - begin);
      });
    }
    float*& y = slots[at(program_.result_slot())];
    const bool is_f32 = result_.type.dtype == ir::DType::kF32;
    if (is_f32) y = result_.as<float>() + begin;
    dispatched_(program_.steps().data(), program_.steps().size(), slots, count);
    if (!is_f32)
      round_to(y, result_.data + begin * element_bytes(result_.type.dtype), result_.type.dtype, count);
  }

  const KernelCall& call_;
  PointwiseProgram program_;
  const TensorRef& result_;
  void (*dispatched_)(const PointwiseStep*, size_t, float* const*, int64_t);
  std::array<StridedRuns, kMaxOperands> runs_;
};

void pointwise(const KernelCall& call, ThreadPool& pool) { Pointwise(call).run(pool); }

}  // namespace

std::span<const Kernel> pointwise_kernels() {
  static constexpr Kernel kernels[] = {{.op = "pointwise",
                                        .run = pointwise,
                                        .workspace_bytes = pointwise_bytes,
                                        .strided_inputs = 0xFFF,
                                        .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
