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
constexpr int64_t kMostCaptured = 200;
constexpr int64_t kMade = 1 << 14;  ///< elements of an operand, which then repeat

template <typename Element, typename MakeElement>
void fill_with(std::span<Element> elements, MakeElement&& make) {
  const size_t made = std::min<size_t>(elements.size(), kMade);
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
void fill_on_host(runtime::TensorRef t) {
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

Result<std::span<std::byte>> OperandMemory::of(int64_t bytes) {
  if (memory_ == nullptr || memory_->size().count < bytes) {
    memory_.reset();  // not beside the new one
    PLIMSOLL_ASSIGN(memory_, device_.allocate(ir::MemorySpace::kDevice, Bytes(bytes)));
  }
  return std::span(memory_->address(), static_cast<size_t>(memory_->size().count));
}

OpTimer::OpTimer(runtime::Device& device, const OpSample& sample, int64_t spread_bytes, OperandMemory* memory)
    : device_(device),
      op_{ops::find_op(sample.op), {}, {}, sample.attrs, {}},
      own_memory_(device),
      owner_(memory == nullptr ? &own_memory_ : memory),
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
  auto taken = owner_->of(round_up(workspace, kAlignment) + copies * bytes);
  if (!taken) {
    check(std::move(taken).error());
    return;
  }
  memory_ = *taken;
  workspace_ = take(workspace);
  for (int64_t i = 0; i < copies && status_; ++i) operands_.push_back(make_operands());
}

bool OpTimer::check(Status status) {
  if (status_ && !status) status_ = std::move(status);
  return status_.ok();
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
  for (const auto& t : made.inputs) check(fill(t));
  return made;
}

Status OpTimer::fill(const runtime::TensorRef& operand) {
  if (operand.data == nullptr || operand.num_elements() == 0) return Ok{};
  if (device_.target().shares_host_memory()) {
    fill_on_host(operand);
    return Ok{};
  }
  const int64_t all = operand.type.bytes().count;
  runtime::TensorRef made = operand;
  made.type.shape = {std::min(operand.num_elements(), kMade)};
  const int64_t bytes = made.type.bytes().count;
  if (staging_ == nullptr) {
    PLIMSOLL_ASSIGN(staging_, device_.allocate(ir::MemorySpace::kHostPinned, Bytes(4 * kMade)));
  }
  made.data = staging_->address();
  fill_on_host(made);
  const auto* begin = static_cast<const std::byte*>(operand.data);
  for (int64_t at = 0; at < all; at += bytes)
    PLIMSOLL_TRY(device_.copy(owner_->place(begin + at), {staging_.get(), 0},
                              Bytes(std::min(bytes, all - at)), ir::Queue::kCompute));
  return device_.synchronize(ir::Queue::kCompute);
}

void OpTimer::launch() {
  if (!status_) return;
  Operands& operands = operands_[next_++ % operands_.size()];
  const runtime::KernelCall call{&op_, operands.inputs, operands.outputs, workspace_};
  check(device_.launch(call, ir::Queue::kCompute));
}

double OpTimer::run() {
  const double start = now_seconds();
  launch();
  check(device_.synchronize(ir::Queue::kCompute));
  return now_seconds() - start;
}

Result<std::vector<double>> OpTimer::log_of_captured(int64_t times) {
  PLIMSOLL_TRY(device_.begin_capture());
  for (int64_t i = 0; i < times; ++i) launch();
  auto graph = device_.end_capture();
  if (!status_) return status_.error();
  if (!graph) return std::move(graph).error();
  PLIMSOLL_TRY(device_.replay(**graph));
  PLIMSOLL_TRY(device_.synchronize(ir::Queue::kCompute));
  std::vector<double> seconds;
  for (const runtime::QueueWork& work : device_.take_queue_log()) seconds.push_back(work.seconds);
  return seconds;
}

std::vector<double> OpTimer::runs_captured(int64_t times) {
  if (!status_) return {};
  device_.log_queues(true);
  auto seconds = log_of_captured(times);
  device_.log_queues(false);
  if (seconds) return std::move(*seconds);
  check(std::move(seconds).error());
  return {};
}

double OpTimer::seconds(double budget_seconds) {
  double best = 1e30, total = 0;
  for (int i = 0; i < 100 && (i < 3 || total < budget_seconds) && status_; ++i) {
    const double t = run();
    best = std::min(best, t);
    total += t;
  }
  return best;
}

std::vector<double> OpTimer::runs_alone(double budget_seconds) {
  if (device_.logs_what_it_captures()) {
    // The first run of a product asks the library for its algorithm, and finds cold memory.
    const std::vector<double> first = runs_captured(2);
    if (first.empty()) return {};
    const double runs = budget_seconds / std::max(first.back(), 1e-6);
    return runs_captured(std::clamp(static_cast<int64_t>(runs), int64_t{kFewAlone}, kMostCaptured));
  }
  const auto interrupted = [] { return resource_use().ru_nivcsw; };
  for (size_t i = 0; i + 1 < operands_.size(); ++i) run();
  double total = run();  // of a machine so slow that one says enough, the only one
  std::vector<double> all = {total}, alone;
  while (all.size() < 1000 && status_ && total < kMostBudgets * budget_seconds &&
         (alone.size() < kFewAlone || total < budget_seconds)) {
    const long before = interrupted();
    all.push_back(run());
    if (interrupted() == before) alone.push_back(all.back());
    total += all.back();
  }
  if (alone.size() >= kFewAlone) return alone;
  return {std::ranges::min(alone.empty() ? all : alone)};  // a machine with much else to do
}

double OpTimer::typical_seconds(double budget_seconds) {
  const std::vector<double> runs = runs_alone(budget_seconds);
  return runs.empty() ? 0 : median(runs);
}

std::span<std::byte> OpTimer::take(int64_t bytes) {
  const auto at = static_cast<size_t>(taken_);
  taken_ += round_up(bytes, kAlignment);
  return memory_.subspan(at, static_cast<size_t>(bytes));
}

}  // namespace plimsoll::measuring
