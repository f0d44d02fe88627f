#include "planner/cost/op_work.h"

#include <algorithm>

namespace plimsoll::planner {
namespace {

ProductType type_of(ir::DType dtype) {
  return dtype == ir::DType::kBf16  ? ProductType::kBf16
         : dtype == ir::DType::kF16 ? ProductType::kF16
                                    : ProductType::kF32;
}

ProductType shortest_type(const ir::OpTypes& t) {
  for (const auto* list : {&t.inputs, &t.outputs})
    for (const ir::TensorType& type : *list)
      if (type_of(type.dtype) != ProductType::kF32) return type_of(type.dtype);
  return ProductType::kF32;
}

OpWork product(const ir::OpTypes& t, double flops) {
  const ir::Shape& out = t.outputs.front().shape;
  // One that is added to columns writes no more than these.
  const auto n = t.op == "linear_add"
                     ? static_cast<double>(t.inputs[1].shape.dim(t.attrs.flag("transposed") ? 1 : 0))
                     : static_cast<double>(out.dim(-1));
  const double m = std::max(1.0, static_cast<double>(out.num_rows()));
  const bool is_dw = t.op.find("_dw") != std::string_view::npos;
  return {.kind = is_dw                        ? "linear_dw"
                  : t.attrs.flag("transposed") ? "linear_t"
                                               : "linear",
          .type = product_type(t),
          .extents = {m, n, std::max(1.0, flops / (2 * m * n))},
          .work = flops};
}

OpWork attention(const ir::OpTypes& t, double flops) {
  const ir::Shape& q = t.inputs.front().shape;
  const bool is_packed = q.rank() == 3;
  const int64_t heads = is_packed ? t.attrs.i64("heads") : q.dim(-2);
  const int64_t head_dim = is_packed ? t.attrs.i64("head_dim") : q.dim(-1);
  return {.kind = t.op.find("_grad") != std::string_view::npos ? "attention_grad" : "attention",
          .type = product_type(t),
          .extents = {static_cast<double>(q.dim(0) * heads), static_cast<double>(q.dim(1)),
                      static_cast<double>(head_dim)},
          .work = flops};
}

OpWork head_loss(const ir::OpTypes& t, double flops) {
  const double hidden = static_cast<double>(t.inputs[0].shape.dim(-1));
  const double rows = static_cast<double>(t.inputs[0].shape.num_rows());
  return {.kind = "head_loss",
          .type = product_type(t),
          .extents = {std::clamp(static_cast<double>(t.attrs.i64("chunk_tokens")), 1.0, rows),
                      static_cast<double>(t.inputs[1].num_elements()) / hidden, hidden},
          .work = flops};
}

}  // namespace

ProductType product_type(const ir::OpTypes& types) {
  if (const ir::Attr* precision = types.attrs.find("precision"); precision != nullptr) {
    const std::string& word = types.attrs.str("precision");
    if (word == "bf16") return ProductType::kBf16;
    if (word == "fp16" || word == "f16") return ProductType::kF16;
    if (word == "tf32") return ProductType::kTf32;
  }
  return types.inputs.empty() ? ProductType::kF32 : type_of(types.inputs.front().dtype);
}

OpWork op_work(const ir::OpTypes& t, const ir::Cost& cost) {
  if (t.op.starts_with("linear") && !t.outputs.empty()) return product(t, cost.flops);
  if (t.op.starts_with("attention") && !t.inputs.empty() && t.op != "attention_cached")
    return attention(t, cost.flops);
  if (t.op.starts_with("head_loss") && t.inputs.size() > 1 && t.inputs[1].shape.rank() == 2)
    return head_loss(t, cost.flops);
  const bool multiplies = t.op.starts_with("attention");
  return {.kind = t.op,
          .type = multiplies ? product_type(t) : shortest_type(t),
          .extents = {std::max(1.0, cost.bytes), 1, 1},
          .work = cost.bytes};
}

}  // namespace plimsoll::planner
