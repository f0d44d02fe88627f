// Shapes, parts, joins and tables of numbers. What can be a view is one.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "library/front_ops.h"
#include "library/invalid.h"
#include "ops/operands.h"
#include "ops/structure.h"

namespace plimsoll::library {
namespace {

using ir::ValueId;

std::vector<int64_t> all_axes(int rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Result<Values> build_reshape(OpCall& call) {
  std::vector<int64_t> shape = call.attrs.integers("shape");
  const int64_t all = call.type(size_t{0}).num_elements();
  const auto open = std::ranges::find(shape, -1);
  if (open != shape.end()) {
    *open = 1;
    const int64_t others = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    if (others <= 0 || all % others != 0)
      return call.attrs.wrong("shape", fmt::format("a shape of {} elements", all));
    *open = all / others;
  }
  if (shape.empty()) shape = {1};
  return Values{call.reshape(call.inputs[0], std::move(shape))};
}

Result<Values> build_permute(OpCall& call) {
  const int rank = call.type(size_t{0}).shape.rank();
  std::vector<int64_t> axes;
  for (const int64_t given : call.attrs.integers("axes")) {
    PLIMSOLL_ASSIGN(const int64_t axis, axis_of(call, "axes", given, rank));
    axes.push_back(axis);
  }
  if (!std::ranges::is_permutation(axes, all_axes(rank))) return call.attrs.wrong("axes", "each axis once");
  return Values{call.permute(call.inputs[0], std::move(axes))};
}

Result<Values> build_transpose(OpCall& call) {
  const int rank = call.type(size_t{0}).shape.rank();
  PLIMSOLL_ASSIGN(const int64_t first, axis_of(call, "axis0", call.attrs.integer("axis0"), rank));
  PLIMSOLL_ASSIGN(const int64_t second, axis_of(call, "axis1", call.attrs.integer("axis1"), rank));
  std::vector<int64_t> axes = all_axes(rank);
  std::swap(axes[static_cast<size_t>(first)], axes[static_cast<size_t>(second)]);
  return Values{call.permute(call.inputs[0], std::move(axes))};
}

/// -1 keeps an extent.
Result<Values> build_expand(OpCall& call) {
  std::vector<int64_t> shape = call.attrs.integers("shape");
  const ir::Shape& x = call.type(size_t{0}).shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i + static_cast<size_t>(x.rank())) - std::ssize(shape);
    if (shape[i] == -1 && axis >= 0) shape[i] = x.dim(static_cast<int>(axis));
  }
  if (shape == extents(x)) return Values{call.inputs[0]};
  return Values{call.b.op("expand", {call.inputs[0]}, {{"shape", std::move(shape)}})};
}

ValueId slice(const OpCall& call, ValueId x, int64_t axis, int64_t start, int64_t size, int64_t step) {
  return call.b.op("slice", {x}, {{"axis", axis}, {"start", start}, {"size", size}, {"step", step}});
}

/// As Python's, with a positive step.
Result<Values> build_slice(OpCall& call) {
  const ir::Shape& x = call.type(size_t{0}).shape;
  PLIMSOLL_ASSIGN(const int64_t axis, axis_of(call, "axis", call.attrs.integer("axis"), x.rank()));
  const int64_t extent = x.dim(static_cast<int>(axis)), step = call.attrs.integer("step");
  if (step < 1) return call.attrs.wrong("step", "1 or more");
  const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent); };
  const int64_t start = place(call.attrs.integer("start"));
  const int64_t end = call.attrs.has("end") ? place(call.attrs.integer("end")) : extent;
  if (end <= start)
    return invalid(fmt::format("slice: nothing is left of {} from {} to {}", extent, start, end));
  if (start == 0 && end == extent && step == 1) return Values{call.inputs[0]};
  return Values{slice(call, call.inputs[0], axis, start, ceil_div(end - start, step), step)};
}

Result<Values> build_split(OpCall& call) {
  const ir::Shape& x = call.type(size_t{0}).shape;
  PLIMSOLL_ASSIGN(const int64_t axis, axis_of(call, "axis", call.attrs.integer("axis"), x.rank()));
  const std::vector<int64_t> sizes = call.attrs.integers("sizes");
  const int64_t sum = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (sizes.empty() || std::ranges::min(sizes) < 1 || sum != x.dim(static_cast<int>(axis)))
    return call.attrs.wrong("sizes", fmt::format("sizes that add up to {}", x.dim(static_cast<int>(axis))));
  if (axis == x.rank() - 1) return ops::split(call.b, call.inputs[0], sizes);
  Values parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    parts.push_back(slice(call, call.inputs[0], axis, start, size, 1));
    start += size;
  }
  return parts;
}

/// Along another axis than the last by permutations, which are views.
Result<Values> build_concat(OpCall& call) {
  const int rank = call.type(size_t{0}).shape.rank();
  PLIMSOLL_ASSIGN(const int64_t axis, axis_of(call, "axis", call.attrs.integer("axis"), rank));
  std::vector<int64_t> axes = all_axes(rank);
  std::swap(axes[static_cast<size_t>(axis)], axes.back());
  for (const ValueId x : call.inputs)
    if (call.type(x).shape.rank() != rank)
      return invalid(fmt::format("concat: {} beside {}", ir::to_string(call.type(x)),
                                 ir::to_string(call.type(size_t{0}))));
  if (call.inputs.size() == 1) return Values{call.inputs[0]};
  if (rank == 4 && axis == 1) {  // channels of images
    if (const auto images = call.as_images({call.inputs.begin(), call.inputs.end()}))
      return Values{call.channels_first(ops::concat(call.b, *images))};
  }
  Values parts;
  for (const ValueId x : call.inputs) parts.push_back(call.permute(x, axes));
  return Values{call.permute(ops::concat(call.b, std::move(parts)), axes)};
}

Result<Values> build_flip(OpCall& call) {
  PLIMSOLL_ASSIGN(const int64_t axis,
                  axis_of(call, "axis", call.attrs.integer("axis"), call.type(size_t{0}).shape.rank()));
  return Values{call.b.op("flip", {call.inputs[0]}, {{"axis", axis}})};
}

Result<Values> build_gather(OpCall& call) {
  const ir::Shape& x = call.type(size_t{0}).shape;
  PLIMSOLL_ASSIGN(const int64_t axis, axis_of(call, "axis", call.attrs.integer("axis"), x.rank()));
  PLIMSOLL_TRY(
      call.trace.note_range(call.inputs[1], x.dim(static_cast<int>(axis)), /*ignores=*/false, "gather"));
  return Values{call.b.op("gather", {call.inputs[0], call.inputs[1]}, {{"axis", axis}})};
}

/// Rows of an axis: the embedding of its indices, with that axis first and all others as one.
Result<Values> build_index_select(OpCall& call) {
  const ir::Shape x = call.type(size_t{0}).shape, index = call.type(1).shape;
  PLIMSOLL_ASSIGN(const int64_t axis, axis_of(call, "axis", call.attrs.integer("axis"), x.rank()));
  if (index.rank() != 1) return invalid("index_select: index has one axis");
  const int64_t rows = x.dim(static_cast<int>(axis));
  PLIMSOLL_TRY(call.trace.note_range(call.inputs[1], rows, /*ignores=*/false, "index_select"));
  std::vector<int64_t> axes = all_axes(x.rank());
  std::swap(axes[0], axes[static_cast<size_t>(axis)]);
  const ValueId turned = call.permute(call.inputs[0], axes);
  std::vector<int64_t> shape = extents(call.type(turned).shape);
  const ValueId table = call.reshape(turned, {rows, x.num_elements() / rows});
  const ValueId picked = call.b.op("embedding", {table, call.reshape(call.inputs[1], {index.dim(0), 1})});
  shape[0] = index.dim(0);
  return Values{call.permute(call.reshape(picked, std::move(shape)), axes)};
}

template <class T>
ValueId constant(const OpCall& call, ir::DType dtype, const std::vector<T>& values) {
  std::vector<std::byte> data(values.size() * sizeof(T));
  std::memcpy(data.data(), values.data(), data.size());
  return call.trace.own_constant({dtype, {std::ssize(values)}}, std::move(data));
}

Result<Values> build_arange(OpCall& call) {
  const double start = call.attrs.number("start"), end = call.attrs.number("end"),
               step = call.attrs.number("step");
  const double count = step == 0 ? 0 : std::ceil((end - start) / step);
  if (!(count >= 1 && count < 0x1p31)) return call.attrs.wrong("end", "a range with a number in it");
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * step;
  if (call.attrs.word("dtype", {"int32", "int64", "float32"}) == "float32")
    return Values{constant(call, ir::DType::kF32, std::vector<float>(values.begin(), values.end()))};
  const auto is_integer = [](double v) { return v == std::trunc(v) && std::abs(v) < 0x1p31; };
  if (!std::ranges::all_of(values, is_integer)) return call.attrs.wrong("dtype", "float32 for this range");
  std::vector<int32_t> integers;
  for (const double v : values) integers.push_back(static_cast<int32_t>(v));
  return Values{constant(call, ir::DType::kI32, integers)};
}

Result<Values> build_full(OpCall& call) {
  const std::vector<int64_t> shape = call.attrs.integers("shape");
  if (!ops::shape_of(shape)) return call.attrs.wrong("shape", "a shape of positive extents");
  return Values{ops::fill(call.b, shape, call.attrs.number("value"))};
}

Result<Values> build_detach(OpCall& call) { return Values{call.b.op("detach", {call.inputs[0]})}; }

}  // namespace

FrontGroup front_shapes() {
  static const std::vector<FrontOp> kOps = {
      {"reshape", "the same elements in another shape", {"x"}, {{"shape"}}, build_reshape},
      {"permute", "the axes in another order", {"x"}, {{"axes"}}, build_permute},
      {"transpose", "two axes exchanged", {"x"}, {{"axis0", "-2"}, {"axis1", "-1"}}, build_transpose},
      {"expand", "broadcast to a shape", {"x"}, {{"shape"}}, build_expand},
      {"slice",
       "x[start:end:step] of an axis",
       {"x"},
       {{"axis", "0"}, {"start", "0"}, {"end", "null"}, {"step", "1"}},
       build_slice},
      {"split", "parts of an axis", {"x"}, {{"sizes"}, {"axis", "-1"}}, build_split},
      {"concat", "joined along an axis", {"x..."}, {{"axis", "-1"}}, build_concat},
      {"flip", "an axis backwards", {"x"}, {{"axis", "0"}}, build_flip},
      {"gather", "elements along an axis by an index of each", {"x", "index"}, {{"axis", "0"}}, build_gather},
      {"index_select", "rows of an axis by their index", {"x", "index"}, {{"axis", "0"}}, build_index_select},
      {"arange",
       "start, start + step, … below end",
       {},
       {{"end"}, {"start", "0"}, {"step", "1"}, {"dtype", R"("int32")"}},
       build_arange},
      {"full", "a constant tensor", {}, {{"shape"}, {"value"}}, build_full},
      {"detach", "x, through which no gradient passes", {"x"}, {}, build_detach},
  };
  return kOps;
}

}  // namespace plimsoll::library
