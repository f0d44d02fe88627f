#include <algorithm>
#include <vector>

#include "backends/cuda/kernel.h"

namespace plimsoll::cuda {
namespace {

std::vector<Kernel> join() {
  std::vector<Kernel> all;
  for (const auto list : {activation_kernels(), attention_kernels(), elementwise_kernels(),
                          embedding_kernels(), grad_norm_kernels(), linear_kernels(), loss_kernels(),
                          norm_kernels(), optimizer_kernels(), random_kernels(), rope_kernels()})
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

}  // namespace plimsoll::cuda
