#include "models/lora.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "io/suggest.h"
#include "models/module_names.h"

namespace plimsoll::models {
namespace {

constexpr std::string_view kBias = ".bias";
constexpr const char* kAllLinear = "all-linear";

/// "a.b.weight" -> "a.b".
std::string module_of(std::string_view tensor) { return std::string(tensor.substr(0, tensor.rfind('.'))); }

Error refused(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint)};
}

class AdapterBuilder {
 public:
  AdapterBuilder(Model& model, const LoraSpec& spec, std::string_view model_type, bool strict)
      : model_(model), spec_(spec), strict_(strict), targets_(spec.target_modules) {
    if (!targets_.given()) targets_.names = default_target_modules(model_type);
    all_linear_ = targets_.names.size() == 1 && targets_.names.front() == kAllLinear;
    saved_ = spec.modules_to_save;
    if (model.num_labels() > 0 && std::find(saved_.begin(), saved_.end(), "score") == saved_.end())
      saved_.emplace_back("score");
  }

  Status operator()() {
    if (!targets_.given())
      return refused("lora.target_modules names no modules, and PEFT has no defaults for this family",
                     "set lora.target_modules to a list of names, or to all-linear");
    PLIMSOLL_TRY(check_patterns());
    collect();
    PLIMSOLL_TRY(save_modules());
    for (const Parameter& p : model_.parameters()) PLIMSOLL_TRY(adapt_storage(p));
    PLIMSOLL_TRY(check_matched());
    save_biases();
    adapters_.dropout = spec_.lora_dropout;
    model_.adapt(std::move(adapters_), std::move(parameters_));
    return Ok{};
  }

 private:
  struct Linear {
    std::string module;
    bool is_head = false;  ///< of the vocabulary or of labels: all-linear leaves it out
  };

  static bool is_linear(const Parameter& p) { return p.shape.rank() == 2 && !p.is_table; }
  [[nodiscard]] static bool is_head(const Parameter& p) { return p.block == ir::kNoBlock; }

  Status check_patterns() const {
    if (targets_.is_pattern && !all_linear_)
      PLIMSOLL_TRY(check_pattern("lora.target_modules", targets_.names.front()));
    if (spec_.exclude_modules.is_pattern)
      PLIMSOLL_TRY(check_pattern("lora.exclude_modules", spec_.exclude_modules.names.front()));
    for (const auto& [pattern, rank] : spec_.rank_pattern)
      PLIMSOLL_TRY(check_pattern("lora.rank_pattern", pattern));
    for (const auto& [pattern, alpha] : spec_.alpha_pattern)
      PLIMSOLL_TRY(check_pattern("lora.alpha_pattern", pattern));
    for (const std::string& pattern : spec_.layers_pattern)
      PLIMSOLL_TRY(check_pattern("lora.layers_pattern", pattern));
    return Ok{};
  }

  void collect() {
    for (const Parameter& p : model_.parameters())
      for (const ParameterView& view : p.views)
        if (is_linear(p)) linears_.push_back({module_of(view.name), is_head(p)});
  }

  Status save_modules() {
    for (const std::string& name : saved_) {
      bool found = false;
      for (const Parameter& p : model_.parameters())
        for (const ParameterView& view : p.views)
          if (is_within(module_of(view.name), name)) {
            found = true;
            if (const auto tied = model_.tied_head(); tied && view.name == tied->embedding)
              return tied_head(name);
            adapters_.keys[view.name] = "base_model.model." + view.name;
          }
      if (const auto tied = model_.tied_head(); !found && tied && is_within(module_of(tied->head), name))
        return tied_head(name);
      if (!found && strict_) return unmatched("lora.modules_to_save", name, saved_candidates());
    }
    return Ok{};
  }

  [[nodiscard]] Error tied_head(const std::string& name) const {
    const auto tied = *model_.tied_head();
    return refused(
        fmt::format("'{}' is tied ({} is {}): adapters cannot part the two", name, tied.head, tied.embedding),
        "leave it out, or untie them: model.overrides.tie_word_embeddings=false with a model whose weights "
        "have both");
  }

  [[nodiscard]] std::vector<std::string> saved_candidates() const {
    std::set<std::string> names;
    for (const Parameter& p : model_.parameters())
      for (const ParameterView& view : p.views) names.insert(last_part(module_of(view.name)));
    return {names.begin(), names.end()};
  }

  [[nodiscard]] bool is_target(const Linear& linear) {
    if (matches(spec_.exclude_modules, linear.module)) return false;
    for (const std::string& saved : saved_)
      if (is_within(linear.module, saved)) return false;
    if (all_linear_) return !linear.is_head;
    if (!note_match(linear.module)) return false;
    if (targets_.is_pattern || spec_.layers_to_transform.empty()) return true;
    const auto layer = layer_index(linear.module, spec_.layers_pattern);
    return layer && std::find(spec_.layers_to_transform.begin(), spec_.layers_to_transform.end(), *layer) !=
                        spec_.layers_to_transform.end();
  }

  bool note_match(const std::string& module) {
    if (targets_.is_pattern) return matches(targets_, module);
    bool any = false;
    for (const std::string& name : targets_.names)
      if (names_module(name, module)) matched_.insert(name), any = true;
    return any;
  }

  Status adapt_storage(const Parameter& p) {
    if (!is_linear(p)) return Ok{};
    Adapter adapter{.weight = p.name, .a = {}, .parts = {}};
    Parameter a;
    const int64_t in = p.shape.dim(p.transposed ? 0 : 1);
    for (const ParameterView& view : p.views) {
      const Linear linear{module_of(view.name), is_head(p)};
      Adapter::Part part{.out = view.shape.dim(p.transposed ? 1 : 0)};
      if (is_target(linear)) PLIMSOLL_TRY(add_part(p, linear, in, part, a));
      adapter.parts.push_back(std::move(part));
    }
    if (a.views.empty()) return Ok{};
    if (spec_.lora_dropout > 0 && p.block == ir::kNoBlock)
      return refused(fmt::format("lora.lora_dropout before {}, which is in no layer, is not available in "
                                 "this version",
                                 p.name),
                     "set lora.lora_dropout=0, or name it in lora.modules_to_save instead");
    a.name = adapter.a = module_of(p.name) + ".lora_A.weight";
    a.shape = {a.views.back().row + a.views.back().shape.dim(0), in};
    parameters_.insert(parameters_.end() - static_cast<std::ptrdiff_t>(a.views.size()), std::move(a));
    adapters_.linears.push_back(std::move(adapter));
    return Ok{};
  }

  /// Rows of `a` for a module, its B, and the part that says so.
  Status add_part(const Parameter& p, const Linear& linear, int64_t in, Adapter::Part& part, Parameter& a) {
    const auto rank = by_pattern(spec_.rank_pattern, linear.module).value_or(spec_.r);
    const double alpha = by_pattern(spec_.alpha_pattern, linear.module).value_or(spec_.lora_alpha);
    if (rank < 1 || rank > std::min(in, part.out))
      return refused(
          fmt::format("a rank of {} for {}, a matrix of {} x {}", rank, linear.module, part.out, in),
          fmt::format("set lora.r, or lora.rank_pattern for it, to 1 to {}", std::min(in, part.out)));
    part.rank = rank;
    part.scale =
        alpha / (spec_.use_rslora ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
    part.b = linear.module + ".lora_B.weight";
    const bool gaussian = spec_.init_lora_weights == LoraInit::kGaussian;
    const auto row = a.views.empty() ? 0 : a.views.back().row + a.views.back().shape.dim(0);
    a.views.push_back({linear.module + ".lora_A.weight", row, {rank, in}});
    a.init = gaussian ? Init::kNormal : Init::kUniform;
    a.init_std = 1.0 / (gaussian ? static_cast<double>(spec_.r) : std::sqrt(static_cast<double>(in)));
    a.block = p.block;
    a.is_adapter = true;
    Parameter b{.name = part.b, .shape = {part.out, rank}, .views = {{part.b, 0, {part.out, rank}}}};
    b.init = spec_.init_lora_weights == LoraInit::kFalse ? Init::kUniform : Init::kZeros;
    b.init_std = 1.0 / std::sqrt(static_cast<double>(rank));
    b.block = p.block;
    b.is_adapter = true;
    parameters_.push_back(std::move(b));
    for (const std::string& name : {a.views.back().name, part.b})
      adapters_.keys[name] = "base_model.model." + name;
    adapted_.insert(linear.module);
    return Ok{};
  }

  /// PEFT saves the bias of an adapted module as its base layer's.
  void save_biases() {
    if (spec_.bias == LoraBias::kNone) return;
    for (const Parameter& p : model_.parameters())
      for (const ParameterView& view : p.views) {
        const std::string module = module_of(view.name);
        const bool is_adapted = adapted_.contains(module);
        if (!view.name.ends_with(kBias) || (spec_.bias == LoraBias::kLoraOnly && !is_adapted)) continue;
        if (adapters_.keys.contains(view.name)) continue;
        adapters_.keys[view.name] =
            "base_model.model." + module + (is_adapted ? ".base_layer.bias" : ".bias");
      }
  }

  [[nodiscard]] Status check_matched() const {
    if (strict_ && !targets_.is_pattern && !all_linear_)
      for (const std::string& name : targets_.names)
        if (!matched_.contains(name)) return unmatched_target(name);
    if (!adapters_.linears.empty()) return Ok{};
    if (targets_.is_pattern) return unmatched_target(targets_.names.front());
    return refused(
        "lora gives no module an adapter: what target_modules names is left out by exclude_modules, "
        "modules_to_save or layers_to_transform",
        fmt::format("the linear maps are {}", fmt::join(target_candidates(), ", ")));
  }

  [[nodiscard]] std::vector<std::string> target_candidates() const {
    std::vector<std::string> names;
    for (const Linear& linear : linears_)
      if (std::string last = last_part(linear.module);
          std::find(names.begin(), names.end(), last) == names.end())
        names.push_back(std::move(last));
    return names;
  }
  [[nodiscard]] Error unmatched_target(const std::string& name) const {
    if (const auto tied = model_.tied_head(); tied && names_module(name, module_of(tied->head)))
      return tied_head(name);
    for (const Parameter& p : model_.parameters())
      if (p.is_table && names_module(name, module_of(p.name)))
        return refused(fmt::format("lora.target_modules: '{}' is an embedding, whose adapters are not "
                                   "available in this version",
                                   name),
                       "name it in lora.modules_to_save: it is trained whole");
    return unmatched("lora.target_modules", name, target_candidates());
  }
  static Error unmatched(const char* setting, const std::string& name,
                         const std::vector<std::string>& known) {
    return refused(fmt::format("{}: no {} matches '{}'", setting,
                               std::string_view(setting).ends_with("save") ? "module" : "linear map",
                               name.substr(0, 100)),
                   nearest_hint(name, known));
  }

  Model& model_;
  const LoraSpec& spec_;
  bool strict_, all_linear_ = false;
  ModuleNames targets_;
  std::vector<std::string> saved_;
  std::vector<Linear> linears_;
  std::set<std::string> matched_, adapted_;
  Adapters adapters_;
  std::vector<Parameter> parameters_;
};

}  // namespace

std::vector<std::string> default_target_modules(std::string_view model_type) {
  if (model_type == "gpt2") return {"c_attn"};
  for (const std::string_view known : {"llama", "mistral", "qwen2", "qwen3"})
    if (model_type == known) return {"q_proj", "v_proj"};
  return {};
}

Status add_adapters(Model& model, const LoraSpec& spec, std::string_view model_type, bool strict) {
  return AdapterBuilder(model, spec, model_type, strict)();
}

}  // namespace plimsoll::models
