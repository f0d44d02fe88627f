#include "planner/cost/op_work.h"

#include <algorithm>

#include "ops/op_list.h"

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

const ir::Work& work_of_key(std::string_view key) {
  static const ir::Work kUnknown;
  if (const ir::OpDef* def = ops::find_op(key); def != nullptr && def->work.keys.empty()) return def->work;
  for (const ir::OpDef* def : ops::all_ops())
    if (std::ranges::find(def->work.keys, key) != def->work.keys.end()) return def->work;
  return kUnknown;
}

OpWork op_work(const ir::OpDef& def, const ir::OpTypes& t, const ir::Cost& cost) {
  using enum ir::WorkKind;
  const ir::WorkKind kind = def.work.kind;
  const bool multiplies = kind == kProduct || kind == kAttention || kind == kLossHead;
  const ProductType type = multiplies ? product_type(t) : shortest_type(t);
  if (def.work.size == nullptr)
    return {.kind = def.name, .type = type, .extents = {std::max(1.0, cost.bytes), 1, 1}, .work = cost.bytes};
  const ir::WorkSize size = def.work.size(t, cost.flops);
  return {.kind = size.key, .type = type, .extents = size.extents, .work = cost.flops};
}

}  // namespace plimsoll::planner
