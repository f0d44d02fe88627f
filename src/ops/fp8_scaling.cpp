#include "ops/fp8_scaling.h"

#include <string>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_record_amax(const OpTypes& t) {
  const auto& slots = t.attrs.ints("slots");
  std::vector<std::string_view> names(1 + slots.size(), "amax");
  names[0] = "history";
  Operands in(t, names.size(), names);
  if (!in) return in.error();
  in.dtypes(DType::kF32).require(t.inputs[0].shape.rank() == 2, "history must have two axes", {0});
  if (!in) return in.error();
  for (size_t i = 0; i < slots.size(); ++i)
    in.shaped(1 + i, Shape{1})
        .require(slots[i] >= 0 && slots[i] < t.inputs[0].shape.dim(1), "slots beyond the history", {0});
  return in.results({t.inputs[0]});
}

Result<Types> infer_next_fp8_scales(const OpTypes& t) {
  Operands in(t, 2, {"history", "scales"});
  if (!in) return in.error();
  in.dtypes(DType::kF32).require(t.inputs[0].shape.rank() == 2, "history must have two axes", {0});
  if (!in) return in.error();
  in.shaped(1, Shape{t.inputs[0].shape.dim(1)})
      .require(t.attrs.i64("margin") >= 0, "margin must not be negative");
  return in.results({t.inputs[0], t.inputs[1]});
}

std::vector<float> floats_of(const std::vector<double>& values) { return {values.begin(), values.end()}; }

void reference_record_amax(RefContext& ctx) {
  std::vector<float> history = floats_of(ctx.inputs[0]->data), amax;
  for (size_t i = 1; i < ctx.inputs.size(); ++i) amax.push_back(static_cast<float>(ctx.inputs[i]->data[0]));
  raise_amax(history, ctx.op.attrs.ints("slots"), amax);
  ctx.outputs[0]->data.assign(history.begin(), history.end());
}

void reference_next_fp8_scales(RefContext& ctx) {
  std::vector<float> history = floats_of(ctx.inputs[0]->data), scales = floats_of(ctx.inputs[1]->data);
  advance_scales(ctx.op.attrs, history, scales);
  ctx.outputs[0]->data.assign(history.begin(), history.end());
  ctx.outputs[1]->data.assign(scales.begin(), scales.end());
}

}  // namespace

void raise_amax(std::span<float> history, std::span<const int64_t> slots, std::span<const float> amax) {
  for (size_t i = 0; i < slots.size(); ++i) {
    float& most = history[at(slots[i])];
    if (amax[i] > most) most = amax[i];  // false for NaN
  }
}

void advance_scales(const ir::Attrs& attrs, std::span<float> history, std::span<float> scales) {
  const numerics::DelayedScaling scaling{attrs.i64("margin"), attrs.flag("most_recent")};
  const auto slots = static_cast<int64_t>(scales.size());
  for (int64_t slot = 0; slot < slots; ++slot) {
    const bool wide = attrs.flag("hybrid") && is_gradient_slot(slot, slots);
    const auto format = wide ? numerics::Format::kE5m2 : numerics::Format::kE4m3;
    const std::span<float> own = history.subspan(at(slot));
    scales[at(slot)] = numerics::next_delayed_scale(scaling, static_cast<float>(numerics::info(format).max),
                                                    own, scales.size(), scales[at(slot)]);
    numerics::roll_history(own, scales.size());
  }
}

OpGroup fp8_scaling_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "record_amax",
       .summary = "largest magnitudes of a step's operands in FP8",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = -1,
       .attrs = {ints_attr("slots")},
       .infer = infer_record_amax,
       .reference = reference_record_amax,
       .autocast = kF32,
       .recompute = kNever,
       .consumes = {{0, 0}}},
      {.name = "next_fp8_scales",
       .summary = "the scales of FP8 for the next step",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {int_attr("margin"), bool_attr("most_recent"), bool_attr("hybrid")},
       .infer = infer_next_fp8_scales,
       .reference = reference_next_fp8_scales,
       .autocast = kF32,
       .recompute = kNever,
       .consumes = {{0, 0}, {1, 1}}},
  };
  return kOps;
}

ir::StateDecl fp8_scale_state(int64_t slots) {
  return {std::string(kFp8ScaleState), {DType::kF32, {slots}}, ir::StateClass::kScaler};
}
ir::StateDecl fp8_history_state(int64_t slots, int64_t history_len) {
  return {std::string(kFp8HistoryState), {DType::kF32, {history_len, slots}}, ir::StateClass::kScaler};
}

ValueId record_amax(Builder& b, ValueId history, const std::vector<ValueId>& amax,
                    std::vector<int64_t> slots) {
  std::vector<ValueId> inputs = {history};
  inputs.insert(inputs.end(), amax.begin(), amax.end());
  return b.op("record_amax", std::move(inputs), {{"slots", std::move(slots)}});
}

Fp8Scales next_fp8_scales(Builder& b, ValueId history, ValueId scales,
                          const numerics::DelayedScaling& scaling, bool hybrid) {
  const auto results =
      b.ops("next_fp8_scales", {history, scales},
            {{"margin", scaling.margin}, {"most_recent", scaling.most_recent}, {"hybrid", hybrid}});
  return {results[0], results[1]};
}

}  // namespace plimsoll::ops
