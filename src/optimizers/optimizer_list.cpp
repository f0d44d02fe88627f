// The optimizers by name, apart from what appends their steps: who only reads a run file needs no graph.
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {

const OptimizerDef* find_optimizer(std::string_view name) {
  for (const auto file : kOptimizerFiles)
    for (const OptimizerDef& def : file())
      if (def.name == name) return &def;
  return nullptr;
}

std::vector<std::string_view> optimizer_names() {
  std::vector<std::string_view> names;
  for (const auto file : kOptimizerFiles)
    for (const OptimizerDef& def : file()) names.push_back(def.name);
  return names;
}

}  // namespace plimsoll::optimizers
