#include "models/linear.h"

namespace plimsoll::models {
namespace {

/// What enters the A's. One mask for the linears of a storage, which read one projection.
ir::ValueId dropped(ir::Builder& b, const Adapter& adapter, double p, ir::ValueId x, const Forward* forward) {
  if (p == 0 || forward == nullptr || !forward->training) return x;
  return ops::dropout(b, x, forward->random, p, ops::random_key(adapter.a, "lora_dropout"));
}

/// base + scale B (A x). The scale is applied to A x, the smallest of the three.
ir::ValueId add_adapter(ir::Builder& b, const Model& model, const Adapter& adapter, ir::ValueId x,
                        ir::ValueId base, const Forward* forward) {
  const auto scope = b.scope("lora");
  const ir::ValueId in = dropped(b, adapter, model.adapters()->dropout, x, forward);
  const ir::ValueId down = ops::linear(b, in, model.read_parameter(b, adapter.a), {});
  std::vector<int64_t> ranks, outs;
  for (const Adapter::Part& part : adapter.parts) {
    if (part.rank > 0) ranks.push_back(part.rank);
    outs.push_back(part.out);
  }
  const auto downs = ranks.size() == 1 ? std::vector{down} : ops::split(b, down, std::move(ranks));
  std::vector<ir::ValueId> parts =
      outs.size() == 1 ? std::vector{base} : ops::split(b, base, std::move(outs));
  for (size_t i = 0, next = 0; i < parts.size(); ++i) {
    const Adapter::Part& part = adapter.parts[i];
    if (part.rank == 0) continue;
    const ir::ValueId scaled = ops::scale(b, downs[next++], ops::fill(b, {1}, part.scale));
    parts[i] = ops::add(b, parts[i], ops::linear(b, scaled, model.read_parameter(b, part.b), {}));
  }
  return parts.size() == 1 ? parts[0] : ops::concat(b, std::move(parts));
}

}  // namespace

ir::ValueId linear(ir::Builder& b, const Model& model, const LinearSpec& spec, ir::ValueId x,
                   const Forward* forward) {
  const ir::ValueId weight = model.read_parameter(b, spec.weight);
  const ir::ValueId bias = spec.bias.empty() ? ir::ValueId{} : model.read_parameter(b, spec.bias);
  const ir::ValueId base = ops::linear(b, x, weight, bias, spec.transposed);
  const Adapter* adapter = model.adapter_of(spec.weight);
  return adapter == nullptr ? base : add_adapter(b, model, *adapter, x, base, forward);
}

}  // namespace plimsoll::models
