// Checks shared by the files of ops.
#include "ops/operands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ops/gelu.h"
#include "ops/rounding.h"

namespace plimsoll::ops {
namespace {

bool is_in(std::initializer_list<size_t> places, size_t i) {
  return std::find(places.begin(), places.end(), i) != places.end();
}

}  // namespace

Operands::Operands(const OpTypes& types, size_t required, std::vector<std::string_view> names)
    : types_(types), names_(std::move(names)) {
  const size_t given = types_.inputs.size();
  if (given < required || given > names_.size()) {
    std::vector<std::string> listed;
    for (size_t i = 0; i < names_.size(); ++i)
      listed.push_back(fmt::format("{}{}", names_[i], i < required ? "" : "?"));
    fail(fmt::format("takes ({}), given {} operands", fmt::join(listed, ", "), given));
    return;
  }
  for (size_t i = 0; i < required; ++i)
    if (!types_.has(i)) fail(fmt::format("{} is absent", names_[i]));
}

Operands& Operands::dtypes(DType dtype, std::initializer_list<size_t> integers) {
  for (size_t i = 0; i < types_.inputs.size(); ++i) {
    if (!types_.has(i)) continue;
    const DType wanted = is_in(integers, i) ? DType::kI32 : dtype;
    expect(i, types_.inputs[i].dtype == wanted, ir::name(wanted));
  }
  return *this;
}

Operands& Operands::floating(std::initializer_list<size_t> singles, std::initializer_list<size_t> integers,
                             std::initializer_list<size_t> blocks) {
  for (size_t i = 0; i < types_.inputs.size(); ++i) {
    if (!types_.has(i)) continue;
    const DType dtype = types_.inputs[i].dtype;
    if (is_in(integers, i))
      expect(i, dtype == DType::kI32, "i32");
    else if (is_in(singles, i))
      expect(i, dtype == DType::kF32, "f32");
    else if (!is_in(blocks, i) || !ir::is_block(dtype))
      expect(i, ir::is_computable(dtype), "f32, bf16 or f16");
  }
  return *this;
}

Operands& Operands::same_dtype(size_t i, DType dtype) {
  if (types_.has(i)) expect(i, types_.inputs[i].dtype == dtype, ir::name(dtype));
  return *this;
}

Operands& Operands::require(bool condition, std::string_view what, std::initializer_list<size_t> shown) {
  if (condition) return *this;
  std::vector<std::string> listed;
  for (const size_t i : shown)
    listed.push_back(fmt::format("{} {}", names_[i], to_string(types_.inputs[i].shape)));
  fail(fmt::format("{}{}{}", what, listed.empty() ? "" : ": ", fmt::join(listed, ", ")));
  return *this;
}

Operands& Operands::shaped(size_t i, const Shape& expected) {
  if (types_.has(i) && types_.inputs[i].shape != expected)
    fail(fmt::format("{} must be {}, is {}", names_[i], to_string(expected),
                     to_string(types_.inputs[i].shape)));
  return *this;
}

Result<Types> Operands::results(Types types) {
  for (const TensorType& t : types)
    if (!shape_of({t.shape.dims().begin(), t.shape.dims().end()}))
      fail(fmt::format("a result would be {}, beyond 2^48 elements or {} axes", to_string(t.shape),
                       Shape::kMaxRank));
  if (error_) return *error_;
  return types;
}

void Operands::expect(size_t i, bool holds, std::string_view dtypes) {
  if (!holds) fail(fmt::format("{} must be {}, is {}", names_[i], dtypes, to_string(types_.inputs[i])));
}

void Operands::fail(std::string what) {
  if (!error_) error_ = Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", types_.op, what)};
}

std::optional<Shape> shape_of(const std::vector<int64_t>& extents) {
  if (extents.empty() || extents.size() > Shape::kMaxRank) return std::nullopt;
  int64_t product = 1;
  for (const int64_t extent : extents) {
    if (extent < 1 || extent > kMaxElements / product) return std::nullopt;
    product *= extent;
  }
  return Shape(std::span(extents));
}

Shape with_last(Shape shape, int64_t extent) {
  shape.set_dim(-1, extent);
  return shape;
}

Shape without_last(const Shape& shape) {
  if (shape.rank() == 1) return Shape{1};
  return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 1)));
}

std::vector<ValueId> trimmed(std::vector<ValueId> inputs) {
  while (!inputs.empty() && !inputs.back().valid()) inputs.pop_back();
  return inputs;
}

DType widest(DType a, DType b) { return a == b ? a : DType::kF32; }

DType out_dtype(Operands& in, const OpTypes& types, DType otherwise, std::string_view attr) {
  if (types.attrs.find(attr) == nullptr) return otherwise;
  const auto dtype = ir::parse_dtype(types.attrs.str(attr));
  in.require(dtype && ir::is_computable(*dtype), fmt::format("{} must be f32, bf16 or f16", attr));
  return dtype.value_or(otherwise);
}
std::optional<DType> dtype_attr(const ir::Attrs& attrs, std::string_view name) {
  return attrs.find(name) == nullptr ? std::nullopt : ir::parse_dtype(attrs.str(name));
}
void check_short(Operands& in, const OpTypes& types, std::string_view name) {
  const auto dtype = dtype_attr(types.attrs, name);
  in.require(types.attrs.find(name) == nullptr || (dtype && ir::is_half_precision(*dtype)),
             fmt::format("{} must be bf16 or f16", name));
}
DType dw_dtype(Operands& in, const OpTypes& types, DType otherwise) {
  return out_dtype(in, types, otherwise, "dw");
}

ir::Attrs with_out(ir::Attrs attrs, DType dtype) {
  if (dtype != DType::kF32) attrs.set("out", std::string(ir::name(dtype)));
  return attrs;
}

void check_precision(Operands& in, const OpTypes& types) {
  const ir::Attr* named = types.attrs.find("precision");
  in.require(named == nullptr || parse_precision(types.attrs.str("precision")),
             "precision must be tf32, bf16 or f16");
}

void check_gelu(Operands& in, const OpTypes& types) {
  std::vector<std::string> known;
  for (const GeluForm& form : gelu_forms()) known.push_back(fmt::format("\"{}\"", form.approximate));
  in.require(find_gelu(types.attrs.str("approximate")) != nullptr,
             fmt::format("approximate must be one of {}", fmt::join(known, ", ")));
}

void store(RefTensor& result) {
  if (ir::is_half_precision(result.type.dtype))
    for (double& v : result.data) v = rounded(v, result.type.dtype);
}

std::vector<double> operand_of(const RefContext& ctx, const RefTensor& x) {
  std::vector<double> values = x.data;
  if (ctx.op.attrs.find("precision") == nullptr) return values;
  const auto precision = parse_precision(ctx.op.attrs.str("precision"));
  if (precision)
    for (double& v : values) v = rounded(v, *precision);
  return values;
}

AttrSpec precision_attr() { return {"precision", AttrSpec::Kind::kString, false}; }
AttrSpec out_attr() { return {"out", AttrSpec::Kind::kString, false}; }
AttrSpec dw_attr() { return {"dw", AttrSpec::Kind::kString, false}; }
AttrSpec bool_attr(std::string_view name) { return {name, AttrSpec::Kind::kBool, false}; }
AttrSpec int_attr(std::string_view name) { return {name, AttrSpec::Kind::kInt, true}; }
AttrSpec float_attr(std::string_view name) { return {name, AttrSpec::Kind::kFloat, true}; }
AttrSpec string_attr(std::string_view name) { return {name, AttrSpec::Kind::kString, true}; }
AttrSpec ints_attr(std::string_view name) { return {name, AttrSpec::Kind::kInts, true}; }

Cost cost_of(const OpTypes& types, double flops) {
  Cost cost{flops, 0};
  for (size_t i = 0; i < types.inputs.size(); ++i)
    if (types.has(i)) cost.bytes += static_cast<double>(types.inputs[i].bytes().count);
  for (const TensorType& t : types.outputs) cost.bytes += static_cast<double>(t.bytes().count);
  return cost;
}

}  // namespace plimsoll::ops
