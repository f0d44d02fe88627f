#include "passes/training/precision_override.h"

#include <fnmatch.h>

#include <algorithm>

#include "ir/op_def.h"
#include "ir/op_query.h"

namespace plimsoll::passes {

using ir::Op;
using ir::ValueId;

bool matches(std::string pattern, const OpNames& names) {
  while (pattern.size() > 2 && pattern.ends_with(".*")) pattern.resize(pattern.size() - 2);  // all below
  const auto is = [](const std::string& glob, const std::string& text) {
    return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
  };
  const auto has_parts = [&](const std::string& name) { return is("*." + pattern + ".*", "." + name + "."); };
  const auto is_whole = [&](const std::string& name) {
    return pattern == name || pattern + ".weight" == name;
  };
  return is(pattern + "_*", names.by_parts[0]) ||
         std::any_of(names.by_parts.begin(), names.by_parts.end(), has_parts) ||
         std::any_of(names.whole.begin(), names.whole.end(), is_whole);
}

std::string OverrideNames::full_layer(const std::string& layer) const {
  const std::string within = "." + layer + ".";
  for (const ir::StateDecl& state : graph_.states()) {
    if (state.state_class != ir::StateClass::kParameter) continue;
    const size_t at = ("." + state.name).find(within);
    if (at != std::string::npos) return state.name.substr(0, at + layer.size());
  }
  return layer;
}

const OpNames& OverrideNames::of(const Op& op) {
  names_.by_parts.assign(1, std::string(op.def->name));
  names_.whole.clear();
  std::string_view layer;
  if (!op.layer.empty()) {
    auto known = layers_.find(op.layer);
    if (known == layers_.end()) known = layers_.emplace(op.layer, full_layer(op.layer)).first;
    layer = known->second;
    names_.by_parts.emplace_back(layer);
  }
  const auto add = [&](const std::string& name) {
    const bool own = name.starts_with(layer);
    names_.by_parts.push_back(own ? name : name.substr(name.find('.') + 1));
    if (!own) names_.whole.push_back(name);
  };
  for (const ValueId v : op.inputs) {
    if (!v.valid()) continue;
    for (const Op* read : ir::states_read(graph_, v)) {
      const ir::StateDecl* state = graph_.find_state(read->attrs.str("name"));
      if (state != nullptr && state->state_class == ir::StateClass::kParameter) add(state->name);
    }
    const Op& joined = ir::maker(graph_, v);  // goes by the name of the whole as well
    if (joined.def->elements == ir::Elements::kJoined && joined.attrs.find("name") != nullptr)
      add(joined.attrs.str("name"));
  }
  return names_;
}

}  // namespace plimsoll::passes
