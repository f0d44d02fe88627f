#include "backends/cpu/kernel.h"
#include "base/check.h"
#include "runtime/kernel_table.h"

namespace plimsoll::cpu {

std::span<const Kernel> all_kernels() {
  static const std::vector<Kernel> all = runtime::join_kernels<Kernel>(
      {activation_kernels(), adafactor_kernels(),   adamw_8bit_kernels(),
       attention_kernels(),  cast_kernels(),        cross_entropy_kernels(),
       dora_kernels(),       elementwise_kernels(), embedding_adapters_kernels(),
       embedding_kernels(),  gather_rows_kernels(), grad_norm_kernels(),
       muon_kernels(),       head_loss_kernels(),   kv_cache_kernels(),
       label_loss_kernels(), linear_few_kernels(),  linear_kernels(),
       loss_scale_kernels(), norm_kernels(),        optimizer_kernels(),
       positions_kernels(),  qk_norm_kernels(),     random_kernels(),
       reduce_kernels(),     rope_kernels(),        structure_kernels()});
  return all;
}

const Kernel* find_kernel(std::string_view op) { return runtime::find_kernel(all_kernels(), op); }

const Kernel& kernel_of(const ir::Op& op) {
  const Kernel* kernel = find_kernel(op.def->name);
  PLIMSOLL_CHECK(kernel != nullptr, "no CPU kernel for " + std::string(op.def->name));
  return *kernel;
}

}  // namespace plimsoll::cpu
