// From a caller's settings to a run's configuration: those of the run file, with the defaults that torch has
// for own models.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/suggest.h"
#include "io/yaml.h"
#include "library/invalid.h"
#include "library/own_plan.h"

namespace plimsoll::library {
namespace {

/// What torch's optimizers have where nothing is said; transformers' for Adafactor, bitsandbytes' for the
/// 8-bit one.
struct OptimizerDefaults {
  std::string_view name;
  double learning_rate, weight_decay;
};
constexpr OptimizerDefaults kDefaults[] = {
    {"adamw", 1e-3, 0.01},      {"adam", 1e-3, 0},      {"sgd", 1e-3, 0},   {"lion", 1e-4, 0},
    {"adamw_8bit", 1e-3, 0.01}, {"adafactor", 1e-3, 0}, {"muon", 1e-3, 0.1}};

Result<io::Tree> read(std::string_view text) {
  auto parsed = io::parse_yaml(text);
  if (!parsed) return std::move(parsed).error().at("settings");
  if (parsed->is_null()) return io::Tree::map();
  if (parsed->kind != io::Tree::Kind::kMap)
    return invalid("settings are " + parsed->describe() + ", expected a map");
  static const std::vector<std::string> kSections = {"training", "memory", "runtime", "debug"};
  for (const auto& [name, value] : parsed->members)
    if (std::ranges::find(kSections, name) == kSections.end())
      return invalid(fmt::format("settings: '{}' is no section of an own model's", name),
                     io::nearest_hint(name, kSections));
  return std::move(*parsed);
}

io::Tree defaults_for(const std::string& optimizer) {
  io::Tree training = io::Tree::map();
  const auto* found = std::ranges::find(kDefaults, optimizer, &OptimizerDefaults::name);
  if (found != std::end(kDefaults)) {
    training.set("learning_rate", io::Tree::of(found->learning_rate));
    if (found->weight_decay > 0) training.set("weight_decay", io::Tree::of(found->weight_decay));
  }
  training.set("weight_decay_scope", io::Tree::of(std::string("all")));
  training.set("max_grad_norm", io::Tree{});
  training.set("lr_scheduler", io::Tree::of(std::string("constant")));
  io::Tree tree = io::Tree::map();
  tree.set("training", std::move(training));
  return tree;
}

std::string optimizer_of(const io::Tree& given) {
  const io::Tree* training = given.find("training");
  const io::Tree* optimizer = training == nullptr ? nullptr : training->find("optimizer");
  return optimizer != nullptr && optimizer->kind == io::Tree::Kind::kString ? optimizer->text : "adamw";
}

/// torch.optim.Adam adds the decay to the gradient; the run file's adam has none.
void decay_as_torch(io::Tree& given) {
  const io::Tree* training = given.find("training");
  if (training == nullptr || optimizer_of(given) != "adam") return;
  const io::Tree *decay = training->find("weight_decay"), *groups = training->find("param_groups");
  const bool decays = decay != nullptr && decay->number > 0;
  if (!decays && groups == nullptr) return;
  io::Tree changed = *training;
  changed.set("optimizer", io::Tree::of(std::string("adam_l2")));
  given.set("training", std::move(changed));
}

/// training.loss_scale is taken out: here it may scale any precision's loss.
io::Tree take_loss_scale(io::Tree& given) {
  for (auto& [section, value] : given.members) {
    if (section != "training") continue;
    const auto found = std::ranges::find(value.members, "loss_scale", [](const auto& m) { return m.first; });
    if (found == value.members.end()) return {};
    io::Tree scale = std::move(found->second);
    value.members.erase(found);
    return scale;
  }
  return {};
}

/// Without one the scale is 1 and stays it: gradients that are not finite skip the update all the same.
Status set_loss_scale(const io::Tree& scale, OwnSettings& own) {
  settings::TrainingSettings& training = own.config.training;
  if (!scale.is_null()) {
    io::Tree part = io::Tree::map(), tree = io::Tree::map();
    part.set("precision", io::Tree::of(std::string("fp16")));
    part.set("loss_scale", scale);
    tree.set("training", std::move(part));
    PLIMSOLL_ASSIGN(const settings::RunConfig parsed,
                    settings::parse_run_config(io::to_yaml_flow(tree), "settings"));
    training.loss_scale = parsed.training.loss_scale;
  } else if (!own.config.scales_loss()) {
    training.loss_scale.fixed = 1.0;
  }
  own.scales_dynamically = !training.loss_scale.fixed.has_value();
  return Ok{};
}

settings::Precision precision_of(const std::string& word) {
  return word == "bf16"   ? settings::Precision::kBf16
         : word == "fp16" ? settings::Precision::kFp16
                          : settings::Precision::kFp32;
}

/// A micro-batch is the declared batch.
void set_sizes(const Trace& trace, settings::RunConfig& config) {
  int64_t batch = 1, longest = 1;
  for (const TracedInput& input : trace.inputs()) {
    if (batch == 1) batch = input.type.shape.dim(0);
    longest = std::max(longest, input.type.num_elements() / input.type.shape.dim(0));
  }
  constexpr int64_t kMost = int64_t{1} << 20;
  config.training.global_batch_size = batch;
  config.training.micro_batch_size = batch;
  config.data.sequence_length = std::min(longest, kMost);
}

}  // namespace

Result<OwnSettings> parse_own_settings(std::string_view text, const Trace& trace) {
  PLIMSOLL_ASSIGN(io::Tree given, read(text));
  const io::Tree scale = take_loss_scale(given);
  io::Tree tree = defaults_for(optimizer_of(given));
  decay_as_torch(given);
  tree.merge(given);
  OwnSettings own;
  PLIMSOLL_ASSIGN(own.config, settings::parse_run_config(io::to_yaml_flow(tree), "settings"));
  settings::RunConfig& config = own.config;
  config.is_embedded = true;
  for (const std::string& precision : trace.precisions())
    config.training.precision_overrides.emplace_back(autocast_part(precision), precision_of(precision));
  if (config.training.ema_decay)
    return invalid("training.ema_decay: a session keeps no averages of its parameters",
                   "leave it out, and average what the session's parameters are after each step");
  PLIMSOLL_TRY(set_loss_scale(scale, own));
  if (config.training.gradient_accumulation_steps.value_or(1) != 1)
    return invalid(
        "training.gradient_accumulation_steps: a session is told with each step how many parts it has",
        "leave it out, or set 1: steps of one part, whose plan has no accumulators");
  set_sizes(trace, config);
  config.memory.optimizer_in_backward = settings::OptimizerInBackward::kFalse;
  // What lies on a disk lies where the caller says.
  const bool has_places = !config.memory.offload_dir.empty() || config.runtime.device != "cpu";
  const io::Tree* memory = given.find("memory");
  if (!has_places && (memory == nullptr || memory->find("offload") == nullptr))
    config.memory.offload = io::Tree::of(std::string("none"));
  return own;
}

}  // namespace plimsoll::library
