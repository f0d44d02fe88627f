// The update of one tensor, and of many in one op.
#include <vector>

#include "backends/cuda/kernels/operands.h"
#include "backends/cuda/kernels/optimizer/optimizer_args.h"
#include "ops/update_draws.h"
#include "ops/update_rules.h"

namespace plimsoll::cuda {
namespace {

/// By the numbers of Rule.
constexpr std::string_view kRules[] = {"adamw", "sgd", "sgd_momentum", "lion", "adam_l2"};

int32_t rule_number(const ops::UpdateRule& rule) {
  for (size_t i = 0; i < std::size(kRules); ++i)
    if (kRules[i] == rule.name) return static_cast<int32_t>(i);
  return -1;
}

/// Tensors collected until a launch is full.
class Updates {
 public:
  /// `shared`: clip, groups, random.
  Updates(const ops::UpdateForm& form, std::span<const TensorRef> shared, Stream& stream)
      : form_(form), stream_(stream) {
    batch_.clip = shared[0].as<const float>();
    batch_.groups = shared[1].as<const float>();
    batch_.columns = shared[1].shape().dim(1);
    if (form.draws) {
      batch_.random = shared[2].as<const uint32_t>();
      batch_.is_shared = shared[2].num_elements() == ops::kOwnDraws ? 1 : 0;
    }
    batch_.rule = static_cast<Rule>(rule_number(*form.rule));
    batch_.rounded = static_cast<int>(form.rounded.value_or(ir::DType::kF32));
  }

  /// `in`: parameter, gradient, states; `out`: parameter, states, copy. Results lie where their operands do.
  Status add(std::span<const TensorRef> in, std::span<const TensorRef> out, int64_t group, int64_t key) {
    const size_t states = form_.rule->states.size();
    for (size_t r = 0; r <= states; ++r) PLIMSOLL_TRY(keep(in[r == 0 ? 0 : 1 + r], out[r]));
    UpdateTensor t;
    t.param = operand(out[0]);
    t.grad = operand(in[1]);
    for (size_t s = 0; s < states; ++s) t.states[s] = operand(out[1 + s]);
    if (form_.copy) t.copy = operand(out[1 + states]);
    t.n = in[0].num_elements();
    t.first_block = blocks_;
    t.first = form_.first;
    t.key = static_cast<uint32_t>(key);
    t.group = static_cast<int>(group);
    batch_.tensors[batch_.count++] = t;
    blocks_ += ceil_div(t.n, kUpdateBlock);
    return static_cast<size_t>(batch_.count) == size_t{kTensorsOfUpdate} ? launch() : Status(Ok{});
  }

  Status launch() {
    if (batch_.count == 0) return Ok{};
    PLIMSOLL_TRY(stream_.launch(kUpdateTensors, blocks(blocks_, 1), {256}, 0, batch_));
    batch_.count = 0;
    blocks_ = 0;
    return Ok{};
  }

 private:
  Status keep(const TensorRef& from, const TensorRef& to) {
    if (from.data == to.data) return Ok{};
    return stream_.copy(to.data, from.data, to.type.bytes().count);
  }

  const ops::UpdateForm& form_;
  Stream& stream_;
  UpdateBatch batch_;
  int64_t blocks_ = 0;
};

Status update(const KernelCall& call, Stream& stream) {
  const ops::UpdateForm form = ops::update_form(call.op->def->name, call.op->attrs);
  const size_t operands = form.rule->num_operands();
  Updates updates(form, call.inputs.subspan(operands), stream);
  PLIMSOLL_TRY(updates.add(call.inputs.first(operands), call.outputs, call.op->attrs.i64("group"),
                           form.draws ? call.op->attrs.i64("key") : 0));
  return updates.launch();
}

Status update_tensors(const KernelCall& call, Stream& stream) {
  const ops::UpdateForm form = ops::update_form(call.op->def->name, call.op->attrs);
  const auto& groups = call.op->attrs.ints("group");
  const auto* keys = form.draws ? &call.op->attrs.ints("key") : nullptr;
  const auto in = call.inputs.subspan(form.num_shared());
  const size_t operands = form.rule->num_operands(), results = form.num_results();
  Updates updates(form, call.inputs, stream);
  for (size_t t = 0; t < groups.size(); ++t)
    PLIMSOLL_TRY(updates.add(in.subspan(operands * t, operands), call.outputs.subspan(results * t, results),
                             groups[t], keys == nullptr ? 0 : (*keys)[t]));
  return updates.launch();
}

}  // namespace

std::span<const Kernel> optimizer_kernels() {
  static const std::vector<Kernel> kernels = [] {
    std::vector<Kernel> list;
    for (const ops::UpdateRule& rule : ops::update_rules()) {
      if (rule_number(rule) < 0) continue;  // a rule that optimizer.cu has not: plans refuse it
      list.push_back({.op = rule.name, .run = update});
      list.push_back({.op = rule.multi_tensor, .run = update_tensors});
    }
    return list;
  }();
  return kernels;
}

}  // namespace plimsoll::cuda
