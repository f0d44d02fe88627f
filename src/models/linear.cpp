#include "models/linear.h"

#include <algorithm>

#include "ops/ops.h"

namespace plimsoll::models {
namespace {

/// What enters the A's. One mask for the linears of a storage, which read one projection.
ir::ValueId dropped(ir::Builder& b, const Adapter& adapter, double p, ir::ValueId x, ir::ValueId noise) {
  if (p == 0 || !noise.valid()) return x;
  return ops::dropout(b, x, noise, p, ops::random_key(adapter.a, "lora_dropout"));
}

/// scale (A x): the smallest place for the scale.
ir::ValueId scaled(ir::Builder& b, const Adapter::Part& part, ir::ValueId down) {
  return ops::scale(b, down, ops::fill(b, {1}, part.scale));
}

/// scale B (A x), the scale behind B where B has a bias.
ir::ValueId up(ir::Builder& b, const Model& model, const Adapter::Part& part, ir::ValueId down) {
  const ir::ValueId weight = model.read_parameter(b, part.b);
  if (part.b_bias.empty()) return ops::linear(b, scaled(b, part, down), weight, {});
  return scaled(b, part, ops::linear(b, down, weight, model.read_parameter(b, part.b_bias)));
}

/// Parts of the last axis by their extents.
std::vector<ir::ValueId> parts_of(ir::Builder& b, ir::ValueId x, std::vector<int64_t> extents) {
  return extents.size() == 1 ? std::vector{x} : ops::split(b, x, std::move(extents));
}

bool is_dora(const Adapter& adapter) {
  return std::any_of(adapter.parts.begin(), adapter.parts.end(),
                     [](const Adapter::Part& part) { return !part.magnitude.empty(); });
}

/// DoRA's (W x + scale B A x) magnitude / norm. `again` is W x' where dropout made x' of x, else absent: then
/// the result is W x + (g - 1) W x' + g scale B A x', as in PEFT.
ir::ValueId by_magnitude(ir::Builder& b, const Model& model, const Adapter::Part& part, ir::ValueId norm,
                         ir::ValueId base, ir::ValueId again, ir::ValueId adapted) {
  const ir::ValueId magnitude = model.read_parameter(b, part.magnitude);
  if (!again.valid()) return ops::dora_scale(b, ops::add(b, base, adapted), magnitude, norm);
  const ir::ValueId rest = ops::add(b, base, ops::scale(b, again, ops::fill(b, {1}, -1.0)));
  return ops::add(b, rest, ops::dora_scale(b, ops::add(b, again, adapted), magnitude, norm));
}

/// W x as the parts that the base consists of where adapters or quantised storages want them apart, else
/// whole.
std::vector<ir::ValueId> base_of(ir::Builder& b, const Model& model, const LinearSpec& spec, ir::ValueId x,
                                 ir::ValueId bias) {
  const auto parts = model.quantized_parts(spec.weight);
  if (parts.empty()) return {ops::linear(b, x, model.read_parameter(b, spec.weight), bias, spec.transposed)};
  std::vector<int64_t> outs;
  for (const Parameter* part : parts) outs.push_back(part->shape.dim(part->transposed ? 1 : 0));
  const std::vector<ir::ValueId> biases =
      bias.valid() ? parts_of(b, bias, std::move(outs)) : std::vector<ir::ValueId>(parts.size());
  std::vector<ir::ValueId> results;
  for (size_t i = 0; i < parts.size(); ++i)
    results.push_back(
        ops::linear(b, x, model.read_parameter(b, parts[i]->name), biases[i], parts[i]->transposed));
  return results;
}

ir::ValueId joined(ir::Builder& b, std::vector<ir::ValueId> parts) {
  return parts.size() == 1 ? parts[0] : ops::concat(b, std::move(parts));
}

/// Products alone: neither DoRA nor a bias.
bool is_plain(const Adapter& adapter) {
  return std::all_of(adapter.parts.begin(), adapter.parts.end(),
                     [](const Adapter::Part& part) { return part.magnitude.empty() && part.b_bias.empty(); });
}

/// Each part's product onto its columns of W x, in place.
ir::ValueId add_products(ir::Builder& b, const Model& model, const Adapter& adapter,
                         const std::vector<ir::ValueId>& downs, std::vector<ir::ValueId> base) {
  if (base.size() != adapter.parts.size()) base = {joined(b, std::move(base))};
  const bool apart = base.size() > 1;
  int64_t column = 0;
  for (size_t i = 0, next = 0; i < adapter.parts.size(); ++i) {
    const Adapter::Part& part = adapter.parts[i];
    ir::ValueId& onto = base[apart ? i : 0];
    if (part.rank > 0)
      onto = ops::linear_add(b, scaled(b, part, downs[next++]), model.read_parameter(b, part.b), onto,
                             apart ? 0 : column);
    column += part.out;
  }
  return joined(b, std::move(base));
}

/// What the adapters make of the base's W x.
ir::ValueId add_adapter(ir::Builder& b, const Model& model, const LinearSpec& spec, const Adapter& adapter,
                        ir::ValueId x, std::vector<ir::ValueId> base, ir::ValueId noise) {
  const auto scope = b.scope("lora");
  const ir::ValueId in = dropped(b, adapter, model.adapters()->dropout, x, noise);
  const ir::ValueId a = model.read_parameter(b, adapter.a);
  std::vector<int64_t> ranks, outs;
  for (const Adapter::Part& part : adapter.parts) {
    if (part.rank > 0) ranks.push_back(part.rank);
    outs.push_back(part.out);
  }
  const auto downs = parts_of(b, ops::linear(b, in, a, {}), std::move(ranks));
  if (is_plain(adapter)) return add_products(b, model, adapter, downs, std::move(base));
  std::vector<ir::ValueId> parts =
      base.size() == adapter.parts.size() ? std::move(base) : parts_of(b, joined(b, std::move(base)), outs);
  std::vector<ir::ValueId> again(parts.size());
  const bool has_dora = is_dora(adapter);
  const auto quantized = model.quantized_parts(spec.weight);
  const ir::ValueId whole =
      has_dora && quantized.empty() ? model.read_parameter(b, spec.weight) : ir::ValueId{};
  if (has_dora && in != x) again = base_of(b, model, spec, in, {});
  if (again.size() != parts.size()) again = parts_of(b, again.front(), std::move(outs));
  ops::DoraRows rows{.transposed = spec.transposed};
  for (size_t i = 0, next = 0; i < parts.size(); ++i) {
    const Adapter::Part& part = adapter.parts[i];
    if (part.rank > 0) {
      const ir::ValueId adapted = up(b, model, part, downs[next++]);
      rows.scale = part.scale;
      ir::ValueId weight = whole;
      if (has_dora && !quantized.empty()) {  // a storage each
        weight = model.read_parameter(b, quantized[i]->name);
        rows.row = 0;
        rows.transposed = quantized[i]->transposed;
      }
      parts[i] = has_dora ? by_magnitude(b, model, part,
                                         ops::dora_norm(b, weight, a, model.read_parameter(b, part.b), rows),
                                         parts[i], again[i], adapted)
                          : ops::add(b, parts[i], adapted);
      rows.rank_row += part.rank;
    }
    rows.row += part.out;
  }
  return joined(b, std::move(parts));
}

}  // namespace

ir::ValueId linear(ir::Builder& b, const Model& model, const LinearSpec& spec, ir::ValueId x,
                   ir::ValueId noise) {
  const Adapter* adapter = model.adapter_of(spec.adapted.empty() ? spec.weight : spec.adapted);
  const ir::ValueId bias = spec.bias.empty() ? ir::ValueId{} : model.read_parameter(b, spec.bias);
  if (adapter == nullptr) return joined(b, base_of(b, model, spec, x, bias));
  // DoRA scales what is before the bias.
  const bool bias_last = bias.valid() && is_dora(*adapter);
  std::vector<ir::ValueId> base = base_of(b, model, spec, x, bias_last ? ir::ValueId{} : bias);
  const ir::ValueId adapted = add_adapter(b, model, spec, *adapter, x, std::move(base), noise);
  return bias_last ? ops::bias_add(b, adapted, bias) : adapted;
}

ir::ValueId embed(ir::Builder& b, const Model& model, const std::string& table, ir::ValueId ids,
                  std::optional<int64_t> padding) {
  ir::ValueId x = ops::embedding(b, model.read_parameter(b, table), ids, padding);
  if (!model.adapters()) return x;
  if (const Adapter* adapter = model.adapter_of(table)) {
    const auto scope = b.scope("lora");
    const ir::ValueId down = ops::embedding_columns(b, model.read_parameter(b, adapter->a), ids, padding);
    x = ops::add(b, x, up(b, model, adapter->parts.front(), down));
  }
  const TokenRows& rows = model.adapters()->token_rows;
  if (rows.rows.empty() || !rows.rows.starts_with(table.substr(0, table.rfind('.')) + ".token")) return x;
  return ops::token_rows(b, x, model.read_parameter(b, rows.rows), ids, rows.tokens);
}

}  // namespace plimsoll::models
