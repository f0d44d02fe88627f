#include "models/activation.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "ops/ops.h"

namespace plimsoll::models {
namespace {

/// Those that are no form of gelu. transformers has two names for silu.
constexpr std::array<std::pair<std::string_view, Activation::Kind>, 4> kOthers = {
    {{"relu", Activation::Kind::kRelu},
     {"silu", Activation::Kind::kSilu},
     {"swish", Activation::Kind::kSilu},
     {"tanh", Activation::Kind::kTanh}}};

std::string names() {
  std::string all = ops::gelu_names();
  for (const auto& [name, kind] : kOthers) all += ", " + std::string(name);
  return all;
}

}  // namespace

Result<Activation> read_activation(const io::ConfigJson& config, std::string_view field,
                                   std::string_view if_missing) {
  PLIMSOLL_ASSIGN(const std::string name, config.string(field, if_missing));
  if (const ops::GeluForm* form = ops::find_gelu_by_name(name))
    return Activation{Activation::Kind::kGelu, form->form};
  const auto* other = std::ranges::find(kOthers, name, &decltype(kOthers)::value_type::first);
  if (other == kOthers.end())
    return config.error(field, "one of " + names(), "other activations are not supported");
  return Activation{other->second};
}

ir::ValueId activate(ir::Builder& b, ir::ValueId x, const Activation& activation) {
  switch (activation.kind) {
    case Activation::Kind::kRelu:
      return ops::pointwise(b, "relu(x0)", {x});
    case Activation::Kind::kSilu:
      return ops::silu(b, x);
    case Activation::Kind::kTanh:
      return ops::pointwise(b, "tanh(x0)", {x});
    case Activation::Kind::kGelu:
      break;
  }
  return ops::gelu(b, x, activation.gelu);
}

}  // namespace plimsoll::models
