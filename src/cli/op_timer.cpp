#include "cli/op_timer.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/process.h"
#include "ops/op_list.h"

namespace plimsoll::cli {
namespace {

void fill(runtime::TensorRef& t) {
  const bool is_short = t.type.dtype == ir::DType::kBf16;
  if (t.type.dtype != ir::DType::kF32 && !is_short) return;  // zeros: token 0
  uint32_t x = 1;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    x = x * 1664525U + 1013904223U;
    const float value = static_cast<float>(x >> 8) * 0x1p-24F - 0.4F;
    if (is_short)
      t.as<uint16_t>()[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    else
      t.as<float>()[i] = value;
  }
}

}  // namespace

OpTimer::OpTimer(cpu::CpuDevice& device, const OpSample& sample)
    : device_(device), op_{ops::find_op(sample.op), {}, {}, sample.attrs, {}} {
  PLIMSOLL_CHECK(op_.def != nullptr, sample.op);
  ir::OpTypes types{sample.op, sample.inputs, {}, op_.attrs};
  auto results = op_.def->infer(types);
  PLIMSOLL_CHECK(results.ok(), results ? "" : results.error().message());
  types.outputs = *results;
  cost_ = op_.def->cost != nullptr ? op_.def->cost(types) : ir::Cost{};
  for (const auto& t : sample.inputs) op_.inputs.push_back({0}), add(t, inputs_);
  for (const auto& t : types.outputs) op_.outputs.push_back({0}), add(t, outputs_);
  for (const auto& alias : ir::op_consumes(op_))
    outputs_[static_cast<size_t>(alias.output)] = inputs_[static_cast<size_t>(alias.input)];
  workspace_ = allocate(device.target().workspace_bytes(types));
  for (auto& t : inputs_) fill(t);
}

double OpTimer::seconds(double budget_seconds) {
  const runtime::KernelCall call{&op_, inputs_, outputs_, workspace_};
  double best = 1e30, total = 0;
  for (int i = 0; i < 100 && (i < 3 || total < budget_seconds); ++i) {
    const double start = now_seconds();
    const Status launched = device_.launch(call, ir::Queue::kCompute);
    PLIMSOLL_CHECK(launched.ok(), launched ? "" : launched.error().message());
    const double t = now_seconds() - start;
    best = std::min(best, t);
    total += t;
  }
  return best;
}

std::span<std::byte> OpTimer::allocate(int64_t bytes) {
  if (bytes == 0) return {};
  auto memory = device_.allocate(ir::MemorySpace::kDevice, Bytes(bytes));
  PLIMSOLL_CHECK(memory.ok(), memory ? "" : memory.error().message());
  memory_.push_back(std::move(*memory));
  return memory_.back()->host();
}

void OpTimer::add(const ir::TensorType& type, std::vector<runtime::TensorRef>& refs) {
  refs.push_back({allocate(type.bytes().count).data(), type, ir::dense_strides(type.shape)});
}

}  // namespace plimsoll::cli
