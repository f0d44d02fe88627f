// Sums, means and maxima over axes.
#include <algorithm>
#include <numeric>

#include "library/front_ops.h"

namespace plimsoll::library {
namespace {

/// Of attribute axes, ascending; all where it is left out.
Result<std::vector<int64_t>> axes_of(OpCall& call) {
  const int rank = call.type(size_t{0}).shape.rank();
  std::vector<int64_t> axes;
  if (!call.attrs.has("axes")) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  for (const int64_t given : call.attrs.integers("axes")) {
    PLIMSOLL_ASSIGN(const int64_t axis, axis_of(call, "axes", given, rank));
    axes.push_back(axis);
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) return call.attrs.wrong("axes", "each axis once");
  return axes;
}

Result<Values> build(OpCall& call, std::string_view kind) {
  PLIMSOLL_ASSIGN(std::vector<int64_t> axes, axes_of(call));
  if (axes.empty()) return Values{call.inputs[0]};
  return Values{call.reduce(kind, call.inputs[0], std::move(axes), call.attrs.flag("keepdims"))};
}

FrontOp reduction(std::string_view name, std::string_view summary, Result<Values> (*build)(OpCall&)) {
  return {name, summary, {"x"}, {{"axes", "null"}, {"keepdims", "false"}}, build};
}

}  // namespace

FrontGroup front_reductions() {
  static const std::vector<FrontOp> kOps = {
      reduction("sum", "the sum over axes", [](OpCall& call) { return build(call, "sum"); }),
      reduction("mean", "the mean over axes", [](OpCall& call) { return build(call, "mean"); }),
      reduction("max", "the largest over axes", [](OpCall& call) { return build(call, "max"); }),
  };
  return kOps;
}

}  // namespace plimsoll::library
