#include "models/model.h"

#include <algorithm>

#include "base/check.h"

namespace plimsoll::models {
namespace {

struct Family {
  std::string_view model_type;
  Result<std::unique_ptr<Model>> (*make)(const ConfigJson&);
};

constexpr Family kFamilies[] = {
    {"llama", make_llama},
    {"mistral", make_llama},  // the same mathematics with a sliding window
    {"gpt2", make_gpt2},
};

}  // namespace

int64_t Model::num_parameters() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.shape.num_elements();
  return n;
}

ir::ValueId Model::read_parameter(ir::Builder& b, std::string_view name) const {
  const auto it =
      std::find_if(parameters_.begin(), parameters_.end(), [&](const auto& p) { return p.name == name; });
  PLIMSOLL_CHECK(it != parameters_.end(), std::string(name));
  return b.state({it->name, {ir::DType::kF32, it->shape}, ir::StateClass::kParameter});
}

ir::ValueId Model::read_constant(ir::Builder& b, std::string_view name) const {
  const auto it =
      std::find_if(constants_.begin(), constants_.end(), [&](const auto& c) { return c.name == name; });
  PLIMSOLL_CHECK(it != constants_.end(), std::string(name));
  return b.state({it->name, {ir::DType::kF32, it->shape}, ir::StateClass::kConstant});
}

Result<std::unique_ptr<Model>> make_model(const ConfigJson& config) {
  PLIMSOLL_ASSIGN(const std::string type, config.string("model_type"));
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.model_type == type) return family.make(config);
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  return config.error("model_type", "one of " + known);
}

}  // namespace plimsoll::models
