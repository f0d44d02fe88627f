// The update of one large tensor by each rule, nanoseconds an element: of AdamW's and the rule's own in turn,
// so that whatever else the machine does falls on both. Processor time of all threads, over their number.
#include <benchmark/benchmark.h>
#include <time.h>

#include <cmath>
#include <string>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "ops/op_list.h"
#include "ops/tensor_rules.h"
#include "ops/update_rules.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kRows = 4096, kCols = 2048;

/// The processor time of the process.
double seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// An update over memory of its own, in place.
class Update {
 public:
  Update(cpu::CpuDevice& device, const std::string& rule) : device_(device) {
    const ir::TensorType matrix{ir::DType::kF32, {kRows, kCols}};
    std::vector<ir::TensorType> types = {matrix, matrix};
    ir::Attrs attrs{{"group", int64_t{0}}};
    int64_t fields = 0;
    if (const ops::UpdateRule* simple = ops::find_update_rule(rule)) {
      types.insert(types.end(), simple->states.size(), matrix);
      fields = simple->num_fields;
    } else {
      const ops::TensorRule& wide = *ops::find_tensor_rule(rule);
      const ops::RuledTensor tensor{matrix.shape, {kRows}};
      for (const ops::RuleState& s : wide.states)
        types.push_back({s.dtype.value_or(ir::DType::kF32), s.shape_of(tensor)});
      fields = wide.num_fields;
      attrs.set("parts", tensor.parts);
    }
    const size_t kept = types.size();
    types.push_back({ir::DType::kF32, {1}});
    types.push_back({ir::DType::kF32, {1, fields}});
    for (size_t i = 0; i < types.size(); ++i) in_.push_back(make(types[i], i));
    for (size_t i = 0; i < kept; ++i)
      if (i != 1) out_.push_back(in_[i]);
    op_.def = ops::find_op(rule);
    op_.attrs = attrs;
    for (size_t i = 0; i < in_.size() + out_.size(); ++i)
      (i < in_.size() ? op_.inputs : op_.outputs).push_back({static_cast<int32_t>(i)});
    ir::OpTypes of{op_.def->name, types, {}, attrs};
    for (const auto& o : out_) of.outputs.push_back(o.type);
    workspace_.resize(static_cast<size_t>(device.target().workspace_bytes(of)) + 64);
  }
  void run() {
    const auto skew = (64 - reinterpret_cast<uintptr_t>(workspace_.data()) % 64) % 64;
    const runtime::KernelCall call{&op_, in_, out_, {workspace_.data() + skew, workspace_.size() - 64}};
    if (!device_.launch(call, ir::Queue::kCompute).ok()) std::abort();
  }

 private:
  runtime::TensorRef make(const ir::TensorType& type, size_t seed) {
    const auto bytes = static_cast<size_t>(type.bytes().count);
    memory_.emplace_back(bytes / 4 + 32);
    auto* at = memory_.back().data();
    at += (64 - reinterpret_cast<uintptr_t>(at) % 64) % 64 / 4;
    for (size_t i = 0; i < bytes / 4; ++i)
      at[i] = 0.01F + static_cast<float>((i + seed) * 2654435761U % 2003) / 2003.0F;
    auto* codes = reinterpret_cast<uint8_t*>(at);
    for (size_t i = 0; type.dtype == ir::DType::kU8 && i < bytes; ++i)
      codes[i] = static_cast<uint8_t>((i + seed) * 2654435761U >> 13);
    return {reinterpret_cast<std::byte*>(at), type, ir::dense_strides(type.shape)};
  }

  cpu::CpuDevice& device_;
  ir::Op op_;
  std::vector<std::vector<float>> memory_;
  std::vector<runtime::TensorRef> in_, out_;
  std::vector<std::byte> workspace_;
};

void in_turn(benchmark::State& state, const std::string& rule) {
  cpu::CpuDevice device(static_cast<int>(state.range(0)));
  Update adamw(device, "adamw"), other(device, rule);
  double base = 0, own = 0;
  for (auto _ : state) {
    const double start = seconds();
    adamw.run();
    const double between = seconds();
    other.run();
    const double end = seconds();
    base += between - start, own += end - between;
    state.SetIterationTime(end - between);
  }
  const double scale = 1e9 / static_cast<double>(state.iterations() * kRows * kCols * state.range(0));
  state.counters["ns"] = own * scale;
  state.counters["adamw_ns"] = base * scale;
  state.counters["of_adamw"] = own / base;
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const char* rule : {"lion", "adafactor", "adamw_8bit"})
    for (const int threads : {1, 2})
      benchmark::RegisterBenchmark((std::string("update/") + rule).c_str(),
                                   [rule](benchmark::State& s) { in_turn(s, rule); })
          ->Arg(threads)
          ->UseManualTime()
          ->Iterations(12);
  return true;
}();

}  // namespace
}  // namespace plimsoll::cpu
