// Copies between memory spaces, by queues that run beside the kernels. A copy is a start and a done: what
// lies between them may run meanwhile, source and destination live until the done.
//
//   %5 = copy_start(%3) {to="host_pinned"} : f32[8,64] host_pinned queue=copy_out
//   …                                                          kernels
//   %9 = copy_done(%5, %3) : f32[8,64] host_pinned             %5 may be read from here on, as %9
#include <fmt/format.h>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_copy_start(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  const std::string& to = t.attrs.str("to");
  in.require(ir::parse_space(to).has_value(), fmt::format("'{}' is no memory space", to));
  return in.results({t.inputs[0]});
}

Result<Types> infer_copy_done(const OpTypes& t) {
  Operands in(t, 2, {"copy", "source"});
  if (!in) return in.error();
  in.require(t.inputs[0] == t.inputs[1], "the copy's type is not its source's", {0, 1});
  return in.results({t.inputs[0]});
}

std::optional<ir::ViewPlace> view_copy_done(const OpTypes&, const ir::Strides& strides, size_t) {
  return ir::ViewPlace{0, strides};
}

}  // namespace

OpGroup copy_ops() {
  using ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "copy_start",
       .summary = "begins to copy into another memory space",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {string_attr("to")},
       .infer = infer_copy_start,
       .reference = reference_copy,
       .recompute = RecomputeClass::kNever,
       .elements = ir::Elements::kSame,
       .is_copy = true},
      {.name = "copy_done",
       .summary = "the copy, which has ended",
       .work = {WorkKind::kNone},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_copy_done,
       .reference = reference_copy,
       .recompute = RecomputeClass::kNever,
       .elements = ir::Elements::kSame,
       .view = view_copy_done,
       .ends_copy = true,
       .is_view = true},
  };
  return kOps;
}

ValueId copy_start(Builder& b, ValueId x, ir::MemorySpace to) {
  const ValueId copy = b.op("copy_start", {x}, {{"to", std::string(ir::name(to))}});
  if (copy.valid())
    b.graph().op(b.graph().value(copy).producer).queue =
        to == ir::MemorySpace::kDevice ? ir::Queue::kCopyIn : ir::Queue::kCopyOut;
  return copy;
}

ValueId copy_done(Builder& b, ValueId copy) {
  if (!copy.valid()) return {};
  const ValueId source = b.graph().op(b.graph().value(copy).producer).inputs[0];
  return b.op("copy_done", {copy, source});
}

}  // namespace plimsoll::ops
