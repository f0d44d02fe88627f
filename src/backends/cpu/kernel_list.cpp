#include <algorithm>
#include <vector>

#include "backends/cpu/kernel.h"
#include "base/check.h"

namespace plimsoll::cpu {
namespace {

std::vector<Kernel> join() {
  std::vector<Kernel> all;
  for (const auto list : {activation_kernels(), adafactor_kernels(),   adamw_8bit_kernels(),
                          attention_kernels(),  cast_kernels(),        cross_entropy_kernels(),
                          dora_kernels(),       elementwise_kernels(), embedding_adapters_kernels(),
                          embedding_kernels(),  gather_rows_kernels(), grad_norm_kernels(),
                          muon_kernels(),       head_loss_kernels(),   kv_cache_kernels(),
                          label_loss_kernels(), linear_few_kernels(),  linear_kernels(),
                          loss_scale_kernels(), norm_kernels(),        optimizer_kernels(),
                          positions_kernels(),  qk_norm_kernels(),     random_kernels(),
                          reduce_kernels(),     rope_kernels(),        structure_kernels()})
    all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end(), [](const Kernel& a, const Kernel& b) { return a.op < b.op; });
  return all;
}

}  // namespace

std::span<const Kernel> all_kernels() {
  static const std::vector<Kernel> all = join();
  return all;
}

const Kernel* find_kernel(std::string_view op) {
  const auto all = all_kernels();
  const auto it = std::lower_bound(all.begin(), all.end(), op,
                                   [](const Kernel& k, std::string_view name) { return k.op < name; });
  return it != all.end() && it->op == op ? &*it : nullptr;
}

const Kernel& kernel_of(const ir::Op& op) {
  const Kernel* kernel = find_kernel(op.def->name);
  PLIMSOLL_CHECK(kernel != nullptr, "no CPU kernel for " + std::string(op.def->name));
  return *kernel;
}

}  // namespace plimsoll::cpu
