#include "ops/fused_quantize.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ops/op_list.h"
#include "ops/operands.h"
#include "ops/scaled_operand.h"

namespace plimsoll::ops {

OpGroup activation_ops();
OpGroup layer_norm_ops();
OpGroup rms_norm_ops();

namespace {

constexpr FusedQuantize kFused[] = {
    {.op = "rms_norm_quantize", .computes = "rms_norm", .num_inputs = 2, .result = 0},
    {.op = "add_rms_norm_quantize", .computes = "add_rms_norm", .num_inputs = 3, .result = 1, .adds = true},
    {.op = "layer_norm_quantize", .computes = "layer_norm", .num_inputs = 3, .result = 0},
    {.op = "add_layer_norm_quantize",
     .computes = "add_layer_norm",
     .num_inputs = 4,
     .result = 1,
     .adds = true},
    {.op = "swiglu_quantize", .computes = "swiglu", .num_inputs = 1, .result = 0, .halves = true},
    {.op = "swiglu_grad_quantize", .computes = "swiglu_grad", .num_inputs = 2, .result = 0, .like = 1},
    {.op = "bias_gelu_quantize", .computes = "bias_gelu", .num_inputs = 2, .result = 0},
    {.op = "bias_gelu_grad_quantize", .computes = "bias_gelu_grad", .num_inputs = 3, .result = 0, .like = 1}};

/// Not find_op, whose list the ops here are in.
const OpDef& def_of(std::string_view computes) {
  for (const OpGroup group : {rms_norm_ops(), layer_norm_ops(), activation_ops()})
    for (const OpDef& def : group)
      if (def.name == computes) return def;
  PLIMSOLL_CHECK(false, std::string(computes));
}

int64_t inner(const FusedQuantize& fused) { return static_cast<int64_t>(fused.num_inputs); }

Result<Types> computed_types(const FusedQuantize& fused, const OpTypes& t) {
  const Types inputs(t.inputs.begin(), t.inputs.begin() + inner(fused));
  return def_of(fused.computes).infer({fused.computes, inputs, {}, t.attrs});
}

/// What the kernel of the op takes as it is stored.
void check_dtypes(const FusedQuantize& fused, const OpTypes& t, Operands& in) {
  if (def_of(fused.computes).norm.y >= 0) return;  // norms take any
  for (size_t i = 0; i < fused.num_inputs; ++i) {
    const bool is_vector = t.inputs[i].shape.rank() == 1;
    in.require(t.inputs[i].dtype == (is_vector ? DType::kF32 : t.inputs[0].dtype),
               "matrices are not of one dtype, or a vector is not f32", {0, i});
  }
}

Result<Types> infer_fused(const OpTypes& t) {
  const FusedQuantize& fused = fused_quantize(t.op);
  constexpr std::string_view kNames[] = {"first", "second", "third", "fourth", "fifth"};
  Operands in(t, fused.num_inputs, {std::begin(kNames), std::begin(kNames) + inner(fused) + 1});
  if (!in) return in.error();
  in.require(names_codes(t.attrs, "scheme"), "scheme must be a scheme of FP8 or FP4");
  if (!in) return in.error();
  const numerics::SchemeInfo& scheme = numerics::info(scheme_of(t.attrs, "scheme"));
  in.require(
      numerics::info(scheme.codes).stored_bits == 8 && scheme.has_tensor_scale == t.has(fused.num_inputs),
      "the scheme has no codes of a byte, or its scale is not given");
  check_dtypes(fused, t, in);
  PLIMSOLL_ASSIGN(Types results, computed_types(fused, t));
  std::vector<TensorType> operands = {results[fused.result]};
  if (t.has(fused.num_inputs)) operands.push_back(t.inputs[fused.num_inputs]);
  const OpTypes quantized{"quantize_operand", std::move(operands), {}, t.attrs};
  PLIMSOLL_ASSIGN(const Types copies, find_op("quantize_operand")->infer(quantized));
  results.erase(results.begin() + static_cast<int64_t>(fused.result));
  results.insert(results.end(), copies.begin(), copies.end());
  return in.results(std::move(results));
}

void reference_fused(RefContext& ctx) {
  const FusedQuantize& fused = fused_quantize(ctx.op.def->name);
  const TensorType second =
      ctx.inputs.size() > 1 && ctx.inputs[1] != nullptr ? ctx.inputs[1]->type : TensorType{};
  const TensorType type = quantized_type(fused, ctx.op.attrs, ctx.inputs[0]->type, second);
  RefTensor y{type, std::vector<double>(at(type.num_elements()))};
  const auto others = static_cast<int64_t>(ctx.outputs.size() - num_copies(ctx.op.attrs));
  RefContext computed{ctx.op,
                      {ctx.inputs.begin(), ctx.inputs.begin() + inner(fused)},
                      {ctx.outputs.begin(), ctx.outputs.begin() + others}};
  computed.outputs.insert(computed.outputs.begin() + static_cast<int64_t>(fused.result), &y);
  def_of(fused.computes).reference(computed);
  store(y);
  RefContext quantized{ctx.op, {&y}, {ctx.outputs.begin() + others, ctx.outputs.end()}};
  quantized.inputs.insert(quantized.inputs.end(), ctx.inputs.begin() + inner(fused), ctx.inputs.end());
  find_op("quantize_operand")->reference(quantized);
}

/// Of each element the op's arithmetic, as of a norm or an activation, and the quantiser's.
Cost cost_fused(const OpTypes& t) { return cost_of(t, 24 * static_cast<double>(t.inputs[0].num_elements())); }

/// Those of the op, but of what is quantised.
std::vector<ir::Alias> aliases_of(const FusedQuantize& fused, const OpDef& computes) {
  const auto result = static_cast<int32_t>(fused.result);
  std::vector<ir::Alias> aliases = computes.in_place;
  std::erase_if(aliases, [&](const ir::Alias& alias) { return alias.output == result; });
  for (ir::Alias& alias : aliases)
    if (alias.output > result) --alias.output;
  return aliases;
}

OpDef fused_def(const FusedQuantize& fused) {
  const OpDef& computes = def_of(fused.computes);
  OpDef def{.name = fused.op, .summary = "its result as codes and scales", .work = {computes.work.kind}};
  def.min_inputs = static_cast<int>(fused.num_inputs);
  def.max_inputs = def.min_inputs + 1;
  def.attrs = computes.attrs;
  def.attrs.insert(def.attrs.end(), {string_attr("scheme"),
                                     bool_attr("transposed"),
                                     bool_attr("both"),
                                     bool_attr("by_sequence"),
                                     {"slot", AttrSpec::Kind::kInt, false},
                                     precision_attr()});
  def.infer = infer_fused;
  def.cost = cost_fused;
  def.reference = reference_fused;
  def.recompute = ir::RecomputeClass::kNearlyFree;
  def.in_place = aliases_of(fused, computes);
  return def;
}

}  // namespace

OpGroup fused_quantize_ops() {
  static const std::vector<OpDef> kOps = [] {
    std::vector<OpDef> defs;
    std::ranges::transform(kFused, std::back_inserter(defs), fused_def);
    return defs;
  }();
  return kOps;
}

std::span<const FusedQuantize> fused_quantizes() { return kFused; }

const FusedQuantize& fused_quantize(std::string_view op) {
  const auto* found = std::ranges::find(kFused, op, &FusedQuantize::op);
  PLIMSOLL_CHECK(found != std::end(kFused), std::string(op));
  return *found;
}

const FusedQuantize* quantizing(std::string_view computes) {
  const auto* found = std::ranges::find(kFused, computes, &FusedQuantize::computes);
  return found == std::end(kFused) ? nullptr : found;
}

TensorType quantized_type(const FusedQuantize& fused, const ir::Attrs& attrs, const TensorType& first,
                          const TensorType& second) {
  TensorType type = fused.like == 0 ? first : second;
  if (fused.halves) type.shape = with_last(type.shape, std::max<int64_t>(type.shape.dim(-1) / 2, 1));
  if (fused.adds) type.dtype = widest(first.dtype, second.dtype);
  if (const auto out = dtype_attr(attrs, "out")) type.dtype = *out;
  return type;
}

size_t num_copies(const ir::Attrs& attrs) {
  const bool has_amax = numerics::info(scheme_of(attrs, "scheme")).has_tensor_scale;
  return 2 + (has_amax ? 1 : 0) + (attrs.flag("both") ? 2 : 0);
}

}  // namespace plimsoll::ops
