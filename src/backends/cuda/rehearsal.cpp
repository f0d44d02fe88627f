#include "backends/cuda/rehearsal.h"

#include <map>
#include <set>
#include <string>

#include "backends/cuda/kernel.h"
#include "backends/cuda/products.h"
#include "ir/op_query.h"

namespace plimsoll::cuda {
namespace {

/// Where operands are said to lie: no two of an op in the same place, and nobody looks.
constexpr uintptr_t kFirst = uintptr_t{1} << 40, kApart = uintptr_t{1} << 40;

class Rehearsal final : public Stream {
 public:
  Rehearsal(int capability, bool multiplies) : capability_(capability), multiplies_(multiplies) {}
  [[nodiscard]] int capability() const override { return capability_; }
  Status multiply(const Product& product) override {
    products_.emplace(Products::form_text(product), product);
    return Ok{};
  }
  bool multiplies(const Product&) override { return multiplies_; }
  Status fill(void*, int64_t, uint32_t) override { return Ok{}; }
  Status copy(void*, const void*, int64_t) override { return Ok{}; }
  Status run_on_host(std::function<void()>) override { return Ok{}; }
  [[nodiscard]] Collectives* collectives() const override { return nullptr; }
  [[nodiscard]] void* handle() const override { return nullptr; }
  [[nodiscard]] const std::set<ModuleId>& modules() const { return modules_; }
  [[nodiscard]] const std::map<std::string, Product>& products() const { return products_; }

 protected:
  Status launch_raw(const Function& function, Dim, Dim, uint32_t, const void*) override {
    modules_.insert({std::string(function.module), std::string(function.defines)});
    return Ok{};
  }

 private:
  int capability_;
  bool multiplies_;
  std::set<ModuleId> modules_;
  std::map<std::string, Product> products_;  ///< by form
};

void rehearse(const ir::Graph& graph, const ir::Op& op, const Kernel& kernel, Stream& stream) {
  uintptr_t next = kFirst;
  const auto place = [&](ir::ValueId v) -> TensorRef {
    if (!v.valid()) return {};
    const ir::TensorType& type = graph.type(v);
    return {reinterpret_cast<std::byte*>(next += kApart), type, ir::dense_strides(type.shape)};
  };
  std::vector<TensorRef> inputs, outputs;
  for (const ir::ValueId v : op.inputs) inputs.push_back(place(v));
  for (const ir::ValueId v : op.outputs) outputs.push_back(place(v));
  for (const auto& alias : ir::op_consumes(op))
    outputs[static_cast<size_t>(alias.output)].data = inputs[static_cast<size_t>(alias.input)].data;
  const int64_t scratch =
      kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(ir::op_types(graph, op));
  const std::span<std::byte> workspace(reinterpret_cast<std::byte*>(next + kApart),
                                       static_cast<size_t>(scratch));
  // What it refuses it will refuse when it is launched.
  (void)kernel.run({&op, inputs, outputs, scratch > 0 ? workspace : std::span<std::byte>()}, stream);
}

void rehearse(std::span<const ir::Graph* const> programs, Stream& stream) {
  for (const ir::Graph* graph : programs)
    for (const ir::OpId id : graph->order()) {
      const ir::Op& op = graph->op(id);
      const Kernel* kernel = op.queue == ir::Queue::kHost ? nullptr : find_kernel(op.def->name);
      if (kernel != nullptr) rehearse(*graph, op, *kernel, stream);
    }
}

}  // namespace

std::vector<ModuleId> modules_of(std::span<const ir::Graph* const> programs, int capability) {
  std::set<ModuleId> all;
  for (const bool multiplies : {true, false}) {
    Rehearsal stream(capability, multiplies);
    rehearse(programs, stream);
    all.insert(stream.modules().begin(), stream.modules().end());
  }
  return {all.begin(), all.end()};
}

std::vector<Product> products_of(std::span<const ir::Graph* const> programs, int capability) {
  Rehearsal stream(capability, /*multiplies=*/true);
  rehearse(programs, stream);
  std::vector<Product> products;
  for (const auto& [form, product] : stream.products()) products.push_back(product);
  return products;
}

}  // namespace plimsoll::cuda
