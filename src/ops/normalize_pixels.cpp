// Pixels of u8 to floating numbers.
#include "ops/normalize_pixels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_normalize_pixels(const OpTypes& t) {
  Operands in(t, 1, {"pixels"});
  if (!in) return in.error();
  in.dtypes(DType::kU8);
  const auto mean = parse_channel_numbers(t.attrs.str("mean")),
             std = parse_channel_numbers(t.attrs.str("std"));
  const auto channels = static_cast<size_t>(t.inputs[0].shape.dim(-1));
  in.require(mean && std && mean->count == channels && std->count == channels,
             "mean and std must have a number for each channel", {0});
  bool divides = std::isfinite(t.attrs.f64("rescale"));
  for (size_t c = 0; std && c < std->count; ++c) divides = divides && std->values[c] > 0;
  in.require(divides, "std must be positive, rescale finite");
  return in.results({{out_dtype(in, t, DType::kF32), t.inputs[0].shape}});
}

void reference_normalize_pixels(RefContext& ctx) {
  const auto mean = parse_channel_numbers(ctx.op.attrs.str("mean")),
             std = parse_channel_numbers(ctx.op.attrs.str("std"));
  const double rescale = ctx.op.attrs.f64("rescale");
  const auto& pixels = ctx.inputs[0]->data;
  for (size_t i = 0; i < pixels.size(); ++i)
    ctx.outputs[0]->data[i] =
        (pixels[i] * rescale - mean->values[i % mean->count]) / std->values[i % std->count];
}

}  // namespace

std::optional<ChannelNumbers> parse_channel_numbers(std::string_view text) {
  ChannelNumbers numbers;
  const char *at = text.data(), *const end = at + text.size();
  while (numbers.count < kMostChannels) {
    double& value = numbers.values[numbers.count++];
    const auto [stop, failure] = std::from_chars(at, end, value);
    if (failure != std::errc() || !std::isfinite(value)) return std::nullopt;
    if (stop == end) return numbers;
    if (*stop != ',') return std::nullopt;
    at = stop + 1;
  }
  return std::nullopt;
}

OpGroup normalize_pixels_ops() {
  static const std::vector<OpDef> kOps = {
      {.name = "normalize_pixels",
       .summary = "(pixel * rescale - mean) / std of each channel",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {float_attr("rescale"), string_attr("mean"), string_attr("std"), out_attr()},
       .infer = infer_normalize_pixels,
       .cost = elementwise_cost<2>,
       .reference = reference_normalize_pixels,
       .autocast = ir::AutocastClass::kF32,
       .recompute = ir::RecomputeClass::kNearlyFree,
       .output_dtypes = {{0, "out"}},
       .norm = {.y = 0}},
  };
  return kOps;
}

ValueId normalize_pixels(Builder& b, ValueId pixels, const PixelScale& scale) {
  return b.op("normalize_pixels", {pixels},
              {{"rescale", scale.rescale},
               {"mean", fmt::format("{}", fmt::join(scale.mean, ","))},
               {"std", fmt::format("{}", fmt::join(scale.std, ","))}});
}

}  // namespace plimsoll::ops
