#include "models/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "models/lora_targets.h"
#include "models/module_names.h"

namespace plimsoll::models {
namespace {

constexpr std::string_view kBias = ".bias";

Error refused(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint)};
}

/// One map of the base: what an adapter of it is made by.
struct BaseMap {
  LoraModule module;
  int64_t in = 0, out = 0;
  int32_t block = ir::kNoBlock;
};

class AdapterBuilder {
 public:
  AdapterBuilder(Model& model, const LoraSpec& spec, std::string_view model_type, bool strict)
      : model_(model), spec_(spec), strict_(strict), targets_(model, spec, model_type) {}

  Status operator()() {
    PLIMSOLL_TRY(targets_.check());
    PLIMSOLL_TRY(check_together());
    PLIMSOLL_TRY(save_modules());
    for (const Parameter& p : model_.parameters()) PLIMSOLL_TRY(adapt(p));
    PLIMSOLL_TRY(adapt_tied_head());
    PLIMSOLL_TRY(check_matched());
    PLIMSOLL_TRY(targets_.check_apart(adapted_));
    PLIMSOLL_TRY(add_token_rows());
    take_brought();
    save_biases();
    adapters_.dropout = spec_.lora_dropout;
    adapters_.factors = factors();
    adapters_.loftq = spec_.loftq_config;
    model_.adapt(std::move(adapters_), std::move(parameters_));
    return Ok{};
  }

 private:
  [[nodiscard]] Factors factors() const {
    switch (spec_.init_lora_weights) {
      case LoraInit::kPissa:
        return Factors::kSvd;
      case LoraInit::kOlora:
        return Factors::kQr;
      case LoraInit::kLoftq:
        return Factors::kLoftq;
      default:
        return Factors::kNone;
    }
  }

  /// lora_bias as PEFT refuses it.
  Status check_together() const {
    if (spec_.use_dora && factors() != Factors::kNone)
      return refused("lora.use_dora with pissa, olora or loftq is not available in this version",
                     "leave lora.init_lora_weights out");
    if (!spec_.lora_bias) return Ok{};
    if (spec_.use_dora)
      return refused("lora.lora_bias is not available with lora.use_dora, as in PEFT", "set one of them");
    if (spec_.init_lora_weights != LoraInit::kTrue && spec_.init_lora_weights != LoraInit::kFalse)
      return refused("lora.lora_bias goes with lora.init_lora_weights true or false alone, as in PEFT",
                     "leave one of them out");
    return Ok{};
  }

  Status save_modules() {
    const auto tied = model_.tied_head();
    for (const std::string& name : targets_.saved()) {
      if (tied && is_saved_by(module_of(tied->head), name)) return targets_.tied(name);
      for (const Parameter& p : model_.parameters())
        for (const ParameterView& view : p.views)
          if (is_saved_by(module_of(view.name), name)) {
            if (tied && view.name == tied->embedding) return targets_.tied(name);
            const bool is_new = !adapters_.keys.contains(view.name);
            if (is_within(module_of(view.name), name))
              adapters_.by_ending.erase(view.name);
            else if (is_new)
              adapters_.by_ending.insert(view.name);
            keep(view.name);
          }
    }
    return Ok{};
  }

  /// What matches nothing is an error of settings; of an adapter that is opened, as PEFT opens it, a remark.
  Status check_matched() {
    std::vector<Error> unmatched = targets_.unmatched(adapted_);
    if (strict_ && !unmatched.empty()) {
      Error first = std::move(unmatched.front());
      first.more.assign(std::make_move_iterator(unmatched.begin() + 1),
                        std::make_move_iterator(unmatched.end()));
      return first;
    }
    if (adapters_.linears.empty()) return targets_.nothing_adapted();
    for (const Error& error : unmatched)
      adapters_.unmatched.push_back(error.what.substr(std::string_view("lora.").size()));
    return Ok{};
  }

  /// Copies of what is adapted are the base's own, unless the vocabulary is another.
  void take_brought() {
    for (const BroughtTensor& tensor : spec_.brought)
      for (const Parameter& p : model_.parameters())
        for (const ParameterView& view : p.views) {
          if (view.name != tensor.view) continue;
          const bool learns = adapters_.keys.contains(view.name);
          if (!spec_.resized && (learns || adapted_.contains(module_of(view.name)))) continue;
          adapters_.brought.insert(view.name);
          if (learns) continue;
          adapters_.keys[view.name] = tensor.key;
          adapters_.still.insert(view.name);
        }
  }

  Status adapt(const Parameter& p) {
    switch (p.kind) {
      case ParameterKind::kLinear:
        return adapt_storage(p);
      case ParameterKind::kTable:
        return adapt_table(p);
      case ParameterKind::kStack:
        return refuse(p, "stack of linear layers");
      case ParameterKind::kFilters:
        return refuse(p, "convolution");
      case ParameterKind::kVector:
        break;
    }
    return Ok{};
  }

  Status refuse(const Parameter& p, std::string_view kind) {
    for (const ParameterView& view : p.views)
      // All linear layers are neither tables nor convolutions.
      if (targets_.takes({.name = module_of(view.name), .is_table = p.kind == ParameterKind::kFilters}))
        return refused(fmt::format("{} is a {} {}: no adapter for one in this version", view.name, kind,
                                   ir::to_string(p.shape)),
                       "name other modules in lora.target_modules, or this one in lora.exclude_modules");
    return Ok{};
  }

  /// The maps of one storage, q, k and v say: their A's are rows of one.
  Status adapt_storage(const Parameter& p) {
    Adapter adapter{.weight = p.name, .a = {}, .parts = {}};
    Parameter a{.name = module_of(p.name) + ".lora_A.weight",
                .kind = ParameterKind::kLinear,
                .shape = {},
                .views = {}};
    std::vector<Parameter> ups;
    for (const ParameterView& view : p.views) {
      const BaseMap map{{module_of(view.name), p.block == ir::kNoBlock},
                        p.shape.dim(p.transposed ? 0 : 1),
                        view.shape.dim(p.transposed ? 1 : 0),
                        p.block};
      Adapter::Part part{.out = map.out};
      if (targets_.takes(map.module)) PLIMSOLL_TRY(add_part(map, part, a, ups));
      adapter.parts.push_back(std::move(part));
    }
    if (!a.views.empty()) add(std::move(adapter), std::move(a), std::move(ups));
    return Ok{};
  }

  Status adapt_tied_head() {
    const auto tied = model_.tied_head();
    if (!tied) return Ok{};
    const auto& all = model_.parameters();
    const auto table =
        std::find_if(all.begin(), all.end(), [&](const Parameter& p) { return p.name == tied->embedding; });
    const BaseMap map{{module_of(tied->head), true}, table->shape.dim(1), table->shape.dim(0)};
    if (!targets_.takes(map.module)) return Ok{};
    if (begins_with_the_base()) return plain_alone(map);
    Adapter adapter{.weight = std::string(tied->head), .a = {}, .parts = {{.out = map.out}}};
    Parameter a{
        .name = map.module.name + ".lora_A.weight", .kind = ParameterKind::kLinear, .shape = {}, .views = {}};
    std::vector<Parameter> ups;
    PLIMSOLL_TRY(add_part(map, adapter.parts.front(), a, ups));
    add(std::move(adapter), std::move(a), std::move(ups));
    return Ok{};
  }

  void add(Adapter adapter, Parameter a, std::vector<Parameter> ups) {
    adapter.a = a.name;
    a.shape = {a.views.back().row + a.views.back().shape.dim(0), a.views.back().shape.dim(1)};
    parameters_.push_back(std::move(a));
    for (Parameter& up : ups) parameters_.push_back(std::move(up));
    adapters_.linears.push_back(std::move(adapter));
  }

  Status settle_rank(const BaseMap& map, Adapter::Part& part) const {
    part.rank = by_pattern(spec_.rank_pattern, map.module.name).value_or(spec_.r);
    const double alpha = by_pattern(spec_.alpha_pattern, map.module.name).value_or(spec_.lora_alpha);
    // What is taken from the base has no more columns than that; what is drawn may have.
    if (factors() != Factors::kNone && part.rank > std::min(map.in, map.out))
      return refused(
          fmt::format(
              "a rank of {} for {}, a matrix of {} x {} of which lora.init_lora_weights takes the rank",
              part.rank, map.module.name, map.out, map.in),
          fmt::format("set lora.r, or lora.rank_pattern for it, to 1 to {}", std::min(map.in, map.out)));
    const auto rank = static_cast<double>(part.rank);
    part.scale = alpha / (spec_.use_rslora ? std::sqrt(rank) : rank);
    return Ok{};
  }

  /// Rows of `a` for a module, its B and what goes with that, and the part that says so.
  Status add_part(const BaseMap& map, Adapter::Part& part, Parameter& a, std::vector<Parameter>& ups) {
    if (spec_.lora_dropout > 0 && map.block == ir::kNoBlock)
      return refused(fmt::format("lora.lora_dropout before {}, which is in no layer, is not available in "
                                 "this version",
                                 map.module.name),
                     "set lora.lora_dropout=0, or name it in lora.modules_to_save instead");
    PLIMSOLL_TRY(settle_rank(map, part));
    const std::string& module = map.module.name;
    const bool gaussian = spec_.init_lora_weights == LoraInit::kGaussian;
    const auto row = a.views.empty() ? 0 : a.views.back().row + a.views.back().shape.dim(0);
    a.views.push_back({module + ".lora_A.weight", row, {part.rank, map.in}});
    a.init = gaussian ? Init::kNormal : Init::kUniform;
    a.init_std = 1.0 / (gaussian ? static_cast<double>(spec_.r) : std::sqrt(static_cast<double>(map.in)));
    a.block = map.block;
    a.is_adapter = true;
    keep(a.views.back().name);
    const auto up = [&](std::string& name, const char* suffix, ParameterKind kind, ir::Shape shape) {
      name = module + suffix;
      ups.push_back(learned(name, kind, shape, Init::kZeros));
      ups.back().block = map.block;
      ups.back().init_std = 1.0 / std::sqrt(static_cast<double>(part.rank));
      if (spec_.init_lora_weights == LoraInit::kFalse) ups.back().init = Init::kUniform;
    };
    up(part.b, ".lora_B.weight", ParameterKind::kLinear, {map.out, part.rank});
    if (spec_.lora_bias) up(part.b_bias, ".lora_B.bias", ParameterKind::kVector, {map.out});
    if (spec_.use_dora) up(part.magnitude, ".lora_magnitude_vector", ParameterKind::kVector, {map.out});
    adapted_.insert(module);
    return Ok{};
  }

  [[nodiscard]] bool begins_with_the_base() const { return spec_.use_dora || factors() != Factors::kNone; }
  static Error plain_alone(const BaseMap& map) {
    return refused(
        fmt::format("{} is {}: no use_dora, lora_bias, pissa, olora or loftq for one in this version",
                    map.module.name, map.module.is_table ? "an embedding" : "tied to the embedding"),
        "name it in lora.modules_to_save, or leave it out of lora.target_modules");
  }

  /// Beside an embedding: A [rank, rows of the table] is looked up by columns, B [width, rank].
  Status adapt_table(const Parameter& p) {
    const BaseMap map{{module_of(p.name), false, true}, p.shape.dim(0), p.shape.dim(1)};
    if (!targets_.takes(map.module)) return Ok{};
    if (spec_.lora_bias || begins_with_the_base()) return plain_alone(map);
    Adapter adapter{.weight = p.name, .a = {}, .parts = {{.out = map.out}}};
    Adapter::Part& part = adapter.parts.front();
    PLIMSOLL_TRY(settle_rank(map, part));
    part.b = map.module.name + ".lora_embedding_B";
    const bool both = spec_.init_lora_weights == LoraInit::kFalse;
    Parameter a = learned(map.module.name + ".lora_embedding_A", ParameterKind::kLinear, {part.rank, map.in},
                          both ? Init::kNormal : Init::kZeros);
    Parameter b = learned(part.b, ParameterKind::kLinear, {map.out, part.rank}, Init::kNormal);
    a.init_std = b.init_std = 1;
    add(std::move(adapter), std::move(a), {std::move(b)});
    adapted_.insert(map.module.name);
    return Ok{};
  }

  Status add_token_rows() {
    const TrainableTokens& asked = spec_.trainable_token_indices;
    if (asked.tokens.empty()) return Ok{};
    const auto& all = model_.parameters();
    const auto table = std::find_if(all.begin(), all.end(), [&](const Parameter& p) {
      return p.kind == ParameterKind::kTable &&
             (asked.module.empty() || names_module(asked.module, module_of(p.name)));
    });
    if (table == all.end())
      return refused(
          fmt::format("lora.trainable_token_indices: no embedding matches '{}'", asked.module.substr(0, 100)),
          "write a list of tokens, or {embed_tokens: [...]}");
    if (const auto tied = model_.tied_head(); tied && table->name == tied->embedding)
      return refused(fmt::format("lora.trainable_token_indices: {} is the head as well, whose rows are not "
                                 "available in this version",
                                 table->name),
                     "name the embedding in lora.target_modules instead: it gets an adapter");
    if (adapters_.keys.contains(table->name) || asked.tokens.back() >= table->shape.dim(0))
      return refused(fmt::format("lora.trainable_token_indices: {} has {} rows, and learns whole or lacks {}",
                                 table->name, table->shape.dim(0), asked.tokens.back()),
                     "name tokens of the vocabulary, of an embedding that is not in lora.modules_to_save");
    const auto count = static_cast<int64_t>(asked.tokens.size());
    adapters_.token_rows = {module_of(table->name) + ".token_adapter.trainable_tokens_delta", asked.tokens};
    parameters_.push_back(learned(adapters_.token_rows.rows, ParameterKind::kTable,
                                  {count, table->shape.dim(1)}, Init::kZeros));
    return Ok{};
  }

  /// A parameter of one tensor that is saved by its own name.
  Parameter learned(std::string name, ParameterKind kind, ir::Shape shape, Init init) {
    Parameter p{.name = name, .kind = kind, .shape = shape, .init = init, .views = {{name, 0, shape}}};
    p.is_adapter = true;
    keep(name);
    return p;
  }
  void keep(const std::string& name) { adapters_.keys[name] = "base_model.model." + name; }

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

  Model& model_;
  const LoraSpec& spec_;
  bool strict_;
  LoraTargets targets_;
  std::set<std::string> adapted_;
  Adapters adapters_;
  std::vector<Parameter> parameters_;
};

}  // namespace

bool fit_vocabulary(LoraSpec& spec, io::ConfigJson& config) {
  const auto vocab_size = config.integer("vocab_size", {1});
  if (!vocab_size) return false;
  for (const BroughtTensor& tensor : spec.brought)
    if (tensor.shape.size() == 2 && tensor.shape.front() != *vocab_size) {
      config.set("vocab_size", io::Tree::of(tensor.shape.front()));
      spec.resized = true;
      return true;
    }
  return false;
}

Status add_adapters(Model& model, const LoraSpec& spec, std::string_view model_type, bool strict) {
  Status added = AdapterBuilder(model, spec, model_type, strict)();
  if (added || strict) return added;
  Error error = std::move(added).error();
  error.code = ErrorCode::kBadData;  // what files say, and no setting
  return error;
}

}  // namespace plimsoll::models
