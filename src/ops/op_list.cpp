// The list of all ops. A new file of ops is declared and listed here.
#include "ops/op_list.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "ops/operands.h"

namespace plimsoll::ops {

OpGroup structure_ops();
OpGroup views_ops();
OpGroup copy_ops();
OpGroup rows_ops();
OpGroup elementwise_ops();
OpGroup accumulate_ops();
OpGroup activation_ops();
OpGroup pointwise_ops();
OpGroup pooling_ops();
OpGroup reduce_ops();
OpGroup strided_ops();
OpGroup batch_norm_ops();
OpGroup batched_matmul_ops();
OpGroup conv2d_ops();
OpGroup conv_norm_ops();
OpGroup normalize_pixels_ops();
OpGroup soft_cross_entropy_ops();
OpGroup softmax_ops();
OpGroup gather_ops();
OpGroup random_ops();
OpGroup rms_norm_ops();
OpGroup layer_norm_ops();
OpGroup layer_scale_ops();
OpGroup linear_ops();
OpGroup linear_dw_db_ops();
OpGroup dequantize_operand_ops();
OpGroup fused_quantize_ops();
OpGroup quantize_operand_ops();
OpGroup scaled_matmul_ops();
OpGroup dora_ops();
OpGroup embedding_adapters_ops();
OpGroup embedding_ops();
OpGroup positions_ops();
OpGroup rope_ops();
OpGroup qk_norm_ops();
OpGroup attention_ops();
OpGroup kv_cache_ops();
OpGroup cross_entropy_ops();
OpGroup group_norm_ops();
OpGroup head_loss_ops();
OpGroup fp8_scaling_ops();
OpGroup gather_rows_ops();
OpGroup label_loss_ops();
OpGroup optimizer_ops();
OpGroup loss_scale_ops();
OpGroup tensor_rules_ops();
OpGroup update_rules_ops();
OpGroup ranks_ops();
OpGroup shard_ops();

namespace {

std::vector<const ir::OpDef*> collect() {
  std::vector<const ir::OpDef*> all;
  for (const OpGroup group : {structure_ops(),
                              views_ops(),
                              copy_ops(),
                              rows_ops(),
                              elementwise_ops(),
                              activation_ops(),
                              random_ops(),
                              rms_norm_ops(),
                              layer_norm_ops(),
                              linear_ops(),
                              linear_dw_db_ops(),
                              quantize_operand_ops(),
                              fused_quantize_ops(),
                              scaled_matmul_ops(),
                              dequantize_operand_ops(),
                              fp8_scaling_ops(),
                              dora_ops(),
                              embedding_adapters_ops(),
                              embedding_ops(),
                              positions_ops(),
                              rope_ops(),
                              qk_norm_ops(),
                              attention_ops(),
                              kv_cache_ops(),
                              cross_entropy_ops(),
                              head_loss_ops(),
                              gather_rows_ops(),
                              label_loss_ops(),
                              optimizer_ops(),
                              loss_scale_ops(),
                              update_rules_ops(),
                              tensor_rules_ops(),
                              pointwise_ops(),
                              reduce_ops(),
                              strided_ops(),
                              batched_matmul_ops(),
                              softmax_ops(),
                              gather_ops(),
                              conv2d_ops(),
                              conv_norm_ops(),
                              batch_norm_ops(),
                              normalize_pixels_ops(),
                              pooling_ops(),
                              group_norm_ops(),
                              layer_scale_ops(),
                              soft_cross_entropy_ops(),
                              ranks_ops(),
                              shard_ops(),
                              accumulate_ops()})
    for (const ir::OpDef& def : group) all.push_back(&def);
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  for (size_t i = 1; i < all.size(); ++i)
    PLIMSOLL_CHECK(all[i - 1]->name != all[i]->name, std::string(all[i]->name));
  return all;
}

}  // namespace

std::span<const ir::OpDef* const> all_ops() {
  static const std::vector<const ir::OpDef*> kAll = collect();
  return kAll;
}

const ir::OpDef* find_op(std::string_view name) {
  const auto all = all_ops();
  const auto it =
      std::lower_bound(all.begin(), all.end(), name, [](const auto* def, auto n) { return def->name < n; });
  return it != all.end() && (*it)->name == name ? *it : nullptr;
}

}  // namespace plimsoll::ops
