// The op groups that each file exports: its definitions. op_list.cpp calls every one of these.
#pragma once

#include <span>

#include "ir/op_def.h"

namespace plimsoll::ops {

using OpGroup = std::span<const ir::OpDef>;

OpGroup structure_ops();
OpGroup views_ops();
OpGroup copy_ops();
OpGroup rows_ops();
OpGroup elementwise_ops();
OpGroup activation_ops();
OpGroup random_ops();
OpGroup rms_norm_ops();
OpGroup layer_norm_ops();
OpGroup linear_ops();
OpGroup dora_ops();
OpGroup embedding_adapters_ops();
OpGroup embedding_ops();
OpGroup positions_ops();
OpGroup rope_ops();
OpGroup qk_norm_ops();
OpGroup attention_ops();
OpGroup kv_cache_ops();
OpGroup cross_entropy_ops();
OpGroup head_loss_ops();
OpGroup gather_rows_ops();
OpGroup label_loss_ops();
OpGroup optimizer_ops();
OpGroup loss_scale_ops();
OpGroup tensor_rules_ops();
OpGroup update_rules_ops();

}  // namespace plimsoll::ops
