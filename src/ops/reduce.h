// Reductions over chosen axes. The conventions are those of ops.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

enum class Reduce : uint8_t { kSum, kMean, kMax };
/// "sum", "mean", "max": attribute {kind}.
std::string_view name(Reduce kind);
std::optional<Reduce> parse_reduce(std::string_view text);

/// x over `axes` (rising, from 0); an axis stays as one of extent 1 where `keep`, else it goes (a scalar is
/// [1]). Sums and means are f32, a maximum is as x, unless `dtype` says otherwise. Order of a sum: rows of
/// the last axis that is kept are added in granules of 256, granules in order; where the last axis goes
/// itself its pieces of 4096 elements are, each summed by vectors, in double. No bit depends on the threads.
/// Op `reduce`(x, acc?) {kind, axes, keep, out?}; acc: a sum goes on from it. The derivative of a maximum is
/// shared by equal elements.
ValueId reduce(Builder& b, Reduce kind, ValueId x, std::vector<int64_t> axes, bool keep,
               std::optional<ir::DType> dtype = {});

}  // namespace plimsoll::ops
