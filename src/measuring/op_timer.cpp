#include "measuring/op_timer.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/median.h"
#include "base/process.h"
#include "base/resource_use.h"
#include "ops/op_list.h"

namespace plimsoll::measuring {
namespace {

constexpr int64_t kMostCopies = 64;
constexpr size_t kFewAlone = 3;  ///< runs that nothing interrupted
constexpr int64_t kAlignment = 64;
constexpr double kMostBudgets = 10;  ///< that waiting for a machine of one's own may take

template <typename Element, typename MakeElement>
void fill_with(std::span<Element> elements, MakeElement&& make) {
  const size_t made = std::min<size_t>(elements.size(), 1 << 14);
  uint32_t x = 1;
  for (size_t i = 0; i < made; ++i) {
    x = x * 1664525U + 1013904223U;
    elements[i] = make(x, i);
  }
  for (size_t at = made; at < elements.size(); at += made)  // what was made, over and over
    std::copy_n(elements.begin(), std::min(made, elements.size() - at),
                elements.begin() + static_cast<int64_t>(at));
}

/// Floats of both signs below 0.6, integers below 1000.
void fill(runtime::TensorRef& t) {
  const auto size = static_cast<size_t>(t.num_elements());
  const auto value = [](uint32_t x) { return static_cast<float>(x >> 8) * 0x1p-24F - 0.4F; };
  if (t.type.dtype == ir::DType::kF32)
    fill_with(std::span(t.as<float>(), size), [&](uint32_t x, size_t) { return value(x); });
  else if (t.type.dtype == ir::DType::kBf16)
    fill_with(std::span(t.as<uint16_t>(), size), [&](uint32_t x, size_t) {
      return static_cast<uint16_t>(std::bit_cast<uint32_t>(value(x)) >> 16);
    });
  else if (t.type.dtype == ir::DType::kF16)
    fill_with(std::span(t.as<uint16_t>(), size), [](uint32_t x, size_t) {
      return static_cast<uint16_t>(0x2c00 | (x >> 16 & 0x83ff) | (x >> 8 & 0x0800));
    });
  else if (t.type.dtype == ir::DType::kI32)
    fill_with(std::span(t.as<int32_t>(), size),
              [](uint32_t, size_t i) { return static_cast<int32_t>(37 * i % 1000); });
}

}  // namespace

std::span<std::byte> OperandMemory::of(int64_t bytes) {
  if (memory_ == nullptr || memory_->size().count < bytes) {
    memory_.reset();  // not beside the new one
    auto memory = device_.allocate(ir::MemorySpace::kDevice, Bytes(bytes));
    PLIMSOLL_CHECK(memory.ok(), memory ? "" : memory.error().message());
    memory_ = std::move(*memory);
  }
  return memory_->host();
}

OpTimer::OpTimer(runtime::Device& device, const OpSample& sample, int64_t spread_bytes, OperandMemory* memory)
    : device_(device),
      op_{ops::find_op(sample.op), {}, {}, sample.attrs, {}},
      own_memory_(device),
      input_types_(sample.inputs) {
  PLIMSOLL_CHECK(op_.def != nullptr, sample.op);
  for (const auto& t : sample.inputs) op_.inputs.push_back({t.shape.rank() > 0 ? 0 : -1});
  auto results = op_.def->infer({sample.op, input_types_, {}, op_.attrs});
  PLIMSOLL_CHECK(results.ok(), results ? "" : results.error().message());
  output_types_ = *results;
  op_.outputs.assign(output_types_.size(), {0});
  if (op_.def->cost != nullptr) cost_ = op_.def->cost(types());
  const int64_t workspace = device.target().workspace_bytes(types());
  int64_t bytes = 0;
  for (const auto* list : {&input_types_, &output_types_})
    for (const auto& t : *list) bytes += round_up(t.bytes().count, kAlignment);
  const int64_t copies = std::clamp<int64_t>(spread_bytes / std::max<int64_t>(1, bytes), 1, kMostCopies);
  memory_ = (memory == nullptr ? own_memory_ : *memory).of(round_up(workspace, kAlignment) + copies * bytes);
  workspace_ = take(workspace);
  for (int64_t i = 0; i < copies; ++i) operands_.push_back(make_operands());
}

ir::OpTypes OpTimer::types() const { return {op_.def->name, input_types_, output_types_, op_.attrs}; }

OpTimer::Operands OpTimer::make_operands() {
  Operands made;
  const auto add = [&](const ir::TensorType& type, std::vector<runtime::TensorRef>& refs) {
    refs.push_back({take(type.bytes().count).data(), type, ir::dense_strides(type.shape)});
  };
  for (const auto& t : input_types_) add(t, made.inputs);
  for (const auto& t : output_types_) add(t, made.outputs);
  for (const auto& alias : ir::op_consumes(op_))
    made.outputs[static_cast<size_t>(alias.output)] = made.inputs[static_cast<size_t>(alias.input)];
  for (auto& t : made.inputs) fill(t);
  return made;
}

void OpTimer::launch() {
  Operands& operands = operands_[next_++ % operands_.size()];
  const runtime::KernelCall call{&op_, operands.inputs, operands.outputs, workspace_};
  const Status launched = device_.launch(call, ir::Queue::kCompute);
  PLIMSOLL_CHECK(launched.ok(), launched ? "" : launched.error().message());
}

double OpTimer::run() {
  const double start = now_seconds();
  launch();
  const Status done = device_.synchronize(ir::Queue::kCompute);
  PLIMSOLL_CHECK(done.ok(), done ? "" : done.error().message());
  return now_seconds() - start;
}

double OpTimer::seconds(double budget_seconds) {
  double best = 1e30, total = 0;
  for (int i = 0; i < 100 && (i < 3 || total < budget_seconds); ++i) {
    const double t = run();
    best = std::min(best, t);
    total += t;
  }
  return best;
}

std::vector<double> OpTimer::runs_alone(double budget_seconds) {
  const auto interrupted = [] { return resource_use().ru_nivcsw; };
  for (size_t i = 0; i + 1 < operands_.size(); ++i) run();
  double total = run();  // of a machine so slow that one says enough, the only one
  std::vector<double> all = {total}, alone;
  while (all.size() < 1000 && total < kMostBudgets * budget_seconds &&
         (alone.size() < kFewAlone || total < budget_seconds)) {
    const long before = interrupted();
    all.push_back(run());
    if (interrupted() == before) alone.push_back(all.back());
    total += all.back();
  }
  if (alone.size() >= kFewAlone) return alone;
  return {std::ranges::min(alone.empty() ? all : alone)};  // a machine with much else to do
}

double OpTimer::typical_seconds(double budget_seconds) { return median(runs_alone(budget_seconds)); }

std::span<std::byte> OpTimer::take(int64_t bytes) {
  const auto at = static_cast<size_t>(taken_);
  taken_ += round_up(bytes, kAlignment);
  return memory_.subspan(at, static_cast<size_t>(bytes));
}

}  // namespace plimsoll::measuring
