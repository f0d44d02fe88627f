// Shared helpers of the op files: checks of operands, so that all errors read alike, declarations of
// attributes, costs.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/at.h"
#include "ir/op_def.h"
#include "ir/verifier.h"
#include "ops/granules.h"
#include "ops/ops.h"

namespace plimsoll::ops {

using ir::AttrSpec;
using ir::Cost;
using ir::DType;
using ir::Op;
using ir::OpDef;
using ir::OpTypes;
using ir::RefContext;
using ir::RefTensor;
using ir::Shape;
using ir::TensorType;
using ir::VjpContext;
using ir::WorkKind;
using ir::WorkSize;
using Types = std::vector<TensorType>;
/// The definitions of one file; op_list.cpp lists them all.
using OpGroup = std::span<const OpDef>;

/// The reference of ops whose result holds the bytes of their first input.
inline void reference_copy(RefContext& ctx) { ctx.outputs[0]->data = ctx.inputs[0]->data; }

using ir::kMaxElements;

/// Checks of an op's operands by name. The first failure sticks and later checks are skipped. After
/// construction test it: only then are the required operands there, and their shapes may be looked at.
///   linear: inner dimensions differ: x [2,3], weight [4,5]
class Operands {
 public:
  /// `names` in operand order; the first `required` of them must be present.
  Operands(const OpTypes& types, size_t required, std::vector<std::string_view> names);
  [[nodiscard]] explicit operator bool() const { return !error_; }
  [[nodiscard]] Error error() const { return *error_; }

  /// All operands of that dtype, those in `integers` i32 instead.
  Operands& dtypes(DType dtype, std::initializer_list<size_t> integers = {});
  /// All operands f32, bf16 or f16, each as it comes, but those in `singles` f32 and those in `integers` i32.
  Operands& floating(std::initializer_list<size_t> singles = {}, std::initializer_list<size_t> integers = {},
                     std::initializer_list<size_t> blocks = {});
  /// Operand `i`, if present, has that dtype: an accumulator is of its result's.
  Operands& same_dtype(size_t i, DType dtype);
  /// `condition`, or "<op>: <what>: <the shown operands>".
  Operands& require(bool condition, std::string_view what, std::initializer_list<size_t> shown = {});
  /// Operand `i`, if present, has that shape.
  Operands& shaped(size_t i, const Shape& expected);
  /// Results of those types if all checks held. Results of more than kMaxElements are an error.
  [[nodiscard]] Result<Types> results(Types types);

 private:
  void expect(size_t i, bool holds, std::string_view dtypes);
  void fail(std::string what);

  const OpTypes& types_;
  std::vector<std::string_view> names_;
  std::optional<Error> error_;
};

/// A shape from an attribute; none if an extent is not positive, or there are too many elements or axes.
std::optional<Shape> shape_of(const std::vector<int64_t>& extents);
/// `shape` with another last extent, or without its last axis (a scalar's is [1]).
Shape with_last(Shape shape, int64_t extent);
Shape without_last(const Shape& shape);
/// Operands without absent ones at the end.
std::vector<ValueId> trimmed(std::vector<ValueId> inputs);

/// Of two computable dtypes: f32 where they differ.
DType widest(DType a, DType b);
/// The dtype that attribute `out`, or `attr`, names, `otherwise` where it is absent. Where it names none that
/// is computable: an error in `in`.
DType out_dtype(Operands& in, const OpTypes& types, DType otherwise, std::string_view attr = "out");
/// The same for attribute `dw`: the dtype of the gradients of an op's parameters, of its parameter's dtype
/// where absent.
DType dw_dtype(Operands& in, const OpTypes& types, DType otherwise);
/// The dtype that attribute `name` names; nothing where it is absent, or names none.
std::optional<DType> dtype_attr(const ir::Attrs& attrs, std::string_view name);
/// An error in `in` where attribute `name` is there and is neither bf16 nor f16.
void check_short(Operands& in, const OpTypes& types, std::string_view name);
/// `attrs` with {out} where that is not f32.
ir::Attrs with_out(ir::Attrs attrs, DType dtype);
AttrSpec out_attr();  ///< optional: the dtype of the result
AttrSpec dw_attr();   ///< optional: the dtype of the parameters' gradients
/// bool_attr of norms' gradients: the parameters do not learn, and dx is the one result.
inline constexpr std::string_view kFrozen = "frozen";
inline ir::Attrs frozen_unless(bool learns) {
  ir::Attrs attrs;
  if (!learns) attrs.set(kFrozen, true);
  return attrs;
}
AttrSpec precision_attr();  ///< optional: what the products' operands are rounded to, see rounding.h
/// An error in `in` where attribute `precision` says none that there is.
void check_precision(Operands& in, const OpTypes& types);
/// An error in `in` where attribute `approximate` says no form of gelu that there is.
void check_gelu(Operands& in, const OpTypes& types);
/// What is computed from a result within its own op is computed from it as it is stored, so that another op
/// may compute the same from the stored value: rounds a short one.
void store(RefTensor& result);
/// The values of `x` as the products take them under attribute `precision` of the op.
std::vector<double> operand_of(const RefContext& ctx, const RefTensor& x);
AttrSpec bool_attr(std::string_view name);  ///< optional; absent means false
AttrSpec int_attr(std::string_view name);
AttrSpec float_attr(std::string_view name);
AttrSpec string_attr(std::string_view name);
AttrSpec ints_attr(std::string_view name);

/// `flops`, and every operand and result across memory once.
Cost cost_of(const OpTypes& types, double flops);
/// A cost function for `PerElement` operations an element of the first result.
template <int PerElement>
Cost elementwise_cost(const OpTypes& types) {
  return cost_of(types, PerElement * static_cast<double>(types.outputs[0].num_elements()));
}

}  // namespace plimsoll::ops
