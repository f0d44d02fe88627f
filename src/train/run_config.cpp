// Loading a run: file, then overrides, each read into assignments and applied; then what must hold between
// settings; then what cannot be done yet.
#include "train/run_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "data/permutation.h"
#include "io/file.h"
#include "io/yaml.h"
#include "optimizers/optimizer.h"
#include "train/schedule.h"
#include "train/settings.h"
#include "train/settings_alias.h"
#include "train/state_settings.h"

namespace plimsoll {
namespace {

using Given =
    std::set<std::string, std::less<>>;  // settings set explicitly, by path; aliases by their own name

Error wrong(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint)};
}

/// Settings of which a run has one: setting another later takes the earlier back, setting two at once
/// contradicts.
constexpr std::array<std::array<std::string_view, 3>, 3> kExclusive = {{
    {"model.path", "model.preset", "model.config"},
    {"training.max_steps", "training.num_epochs", ""},
    {"training.warmup_steps", "training.warmup_ratio", ""},
}};

/// Whether the value takes part in an exclusive group: null and a warm-up of 0 do not.
bool says_something(const Tree& value) {
  const bool zero =
      (value.kind == Tree::Kind::kInteger || value.kind == Tree::Kind::kNumber) && value.number == 0;
  return !value.is_null() && !zero;
}

Status take_back_others(const Assignment& made, std::span<const Assignment> document, RunConfig& config) {
  if (!says_something(made.value)) return Ok{};
  for (const auto& group : kExclusive) {
    if (std::find(group.begin(), group.end(), made.setting->path) == group.end()) continue;
    for (const std::string_view other : group) {
      if (other.empty() || other == made.setting->path) continue;
      for (const Assignment& assignment : document)
        if (assignment.setting && assignment.setting->path == other && says_something(assignment.value))
          return Error{ErrorCode::kInvalidArgument,
                       fmt::format("{} and {} contradict", assignment.name, made.name), made.where,
                       "keep one of them"};
      // Null is nothing for all of them but warmup_steps, a plain count.
      const bool count = other == "training.warmup_steps";
      PLIMSOLL_TRY(assign_setting(*find_setting(other), count ? Tree::of(int64_t{0}) : Tree{}, config));
    }
  }
  return Ok{};
}

void switch_section(const Assignment& made, RunConfig& config) {
  const bool on = !made.value.is_null();
  if (made.section == "lora") {
    if (!on) config.lora = {};
    config.lora.enabled = on;
  } else {
    if (!on) config.quantization = {};
    config.quantization.enabled = on;
  }
}

/// One document, file or override, put over the config.
Status apply(const Tree& document, const std::string& source, RunConfig& config, Given& given) {
  PLIMSOLL_ASSIGN(const auto assignments, read_assignments(document, source, config.notes));
  for (const Assignment& made : assignments) {
    if (!made.setting) {
      switch_section(made, config);
      continue;
    }
    auto status = assign_setting(*made.setting, made.value, config);
    if (!status) return std::move(status).error().at(made.where);
    PLIMSOLL_TRY(take_back_others(made, assignments, config));
    given.insert(made.setting->path);
    given.insert(made.name);
  }
  return Ok{};
}

/// "a.b=value" as the document {a: {b: value}}.
Result<Tree> override_document(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' is no override", text.substr(0, 100)),
                 {},
                 "write key=value, for example training.max_steps=10"};
  const std::string_view value_text = std::string_view(text).substr(equals + 1);
  // An alias or a directive has no meaning in a single value, a glob or a sign has.
  const bool plain = value_text.starts_with('*') || value_text.starts_with('%');
  auto value = plain ? Result<Tree>(Tree::of(std::string(value_text))) : parse_yaml(value_text);
  if (!value) return std::move(value).error().at("override " + text.substr(0, 100));
  value->line = 0;
  Tree document = std::move(*value);
  std::string_view path = std::string_view(text).substr(0, equals);
  for (int depth = 0; !path.empty(); ++depth) {
    if (depth > 32)
      return Error{
          ErrorCode::kInvalidArgument, "an override with too many dots", {}, "see --help for the settings"};
    const size_t dot = path.rfind('.');
    const std::string_view last = dot == std::string_view::npos ? path : path.substr(dot + 1);
    document = Tree::map({{std::string(last), std::move(document)}});
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
  }
  return document;
}

Status check_batch(TrainingSettings& training, const Given& given) {
  const auto& micro = training.micro_batch_size;
  const auto& accum = training.gradient_accumulation_steps;
  const bool from_product = !given.contains("training.global_batch_size") && micro &&
                            (accum || given.contains("per_device_train_batch_size"));
  if (from_product) training.global_batch_size = *micro * accum.value_or(1);
  const int64_t global = training.global_batch_size;
  if (global > 1 << 24)
    return wrong(fmt::format("a global batch of {} sequences is too large", global), "lower the batch");
  if (micro && accum && *micro * *accum != global)
    return wrong(fmt::format("training.micro_batch_size ({}) times training.gradient_accumulation_steps ({}) "
                             "is not training.global_batch_size ({})",
                             *micro, *accum, global),
                 "leave one of them auto");
  if (micro && global % *micro != 0)
    return wrong(fmt::format("training.micro_batch_size ({}) does not divide training.global_batch_size ({})",
                             *micro, global),
                 "choose a divisor, or auto");
  if (accum && global % *accum != 0)
    return wrong(
        fmt::format(
            "training.gradient_accumulation_steps ({}) does not divide training.global_batch_size ({})",
            *accum, global),
        "choose a divisor, or auto");
  return Ok{};
}

Status check_device(const std::string& device) {
  const bool numbered =
      device.starts_with("cuda:") && device.size() > 5 && device.size() <= 8 &&
      std::all_of(device.begin() + 5, device.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (device == "cpu" || device == "cuda" || numbered) return Ok{};
  return wrong("runtime.device is " + Tree::of(device).describe() + ", expected cpu, cuda or cuda:1",
               "set runtime.device=cpu");
}

/// The decay of adam and sgd where none is given, and torch.optim.SGD's rules for momentum.
Status check_optimizer(RunConfig& config, const Given& given) {
  TrainingSettings& t = config.training;
  const bool decay_given = given.contains("training.weight_decay");
  if (t.optimizer == "adam" && decay_given && t.weight_decay != 0)
    return wrong("training.optimizer adam has no decay, and training.weight_decay is not 0",
                 "use adamw, or set training.weight_decay=0");
  if ((t.optimizer == "adam" || t.optimizer == "sgd") && !decay_given) t.weight_decay = 0;
  if (t.optimizer != "sgd") {
    if (t.momentum != 0 || t.dampening != 0 || t.nesterov)
      config.notes.push_back(fmt::format(
          "training.momentum, dampening and nesterov are sgd's: they have no effect with {}", t.optimizer));
    return Ok{};
  }
  if (t.nesterov && (t.momentum == 0 || t.dampening != 0))
    return wrong(
        fmt::format("training.nesterov takes a momentum and no dampening, and training.{} is {}",
                    t.momentum == 0 ? "momentum" : "dampening", t.momentum == 0 ? t.momentum : t.dampening),
        "set training.momentum=0.9 training.dampening=0, or training.nesterov=false");
  return Ok{};
}

Status check_buckets(const DataSettings& data) {
  if (!data.buckets.given()) return Ok{};
  if (data.packing != "pad")
    return wrong(fmt::format("data.buckets is for data.packing pad, and data.packing is {}", data.packing),
                 "set data.packing=pad, or data.buckets=null");
  const auto& lengths = data.buckets.lengths;
  if (std::adjacent_find(lengths.begin(), lengths.end(), std::greater_equal<>()) != lengths.end())
    return wrong(fmt::format("data.buckets is [{}], and its lengths do not rise", fmt::join(lengths, ", ")),
                 "write each length once, the shortest first");
  if (!lengths.empty() && lengths.back() > data.sequence_length)
    return wrong(fmt::format("data.buckets has {}, and data.sequence_length is {}", lengths.back(),
                             data.sequence_length),
                 fmt::format("set data.sequence_length={}, or leave that length out", lengths.back()));
  return Ok{};
}

Status check_data(const RunConfig& config) {
  const DataSettings& data = config.data;
  if (!data.weights.empty() && data.weights.size() != data.train.size())
    return wrong(fmt::format("data.weights has {} numbers and data.train {} entries", data.weights.size(),
                             data.train.size()),
                 "give one weight an entry of data.train");
  if (data.eval_fraction > 0 && !data.eval.empty())
    return wrong("data.eval and data.eval_fraction contradict", "keep one of them");
  return check_buckets(data);
}

/// A loss scale takes fp16, and does not begin where it ends.
Status check_loss_scale(RunConfig& config, const Given& given) {
  const LossScaleSettings& scale = config.training.loss_scale;
  const auto named = given.lower_bound("training.loss_scale.");
  if (!config.scales_loss() && named != given.end() && named->starts_with("training.loss_scale."))
    config.notes.push_back("training.loss_scale has no effect: nothing is computed in fp16");
  if (scale.fixed || scale.init_scale >= scale.min_scale) return Ok{};
  return wrong(fmt::format("training.loss_scale.init_scale ({:g}) is below its min_scale ({:g})",
                           scale.init_scale, scale.min_scale),
               "raise init_scale, or lower min_scale");
}

/// A residual stream in the low precision takes one of 16 bits.
Status check_precision(const TrainingSettings& training) {
  const std::string& precision = training.precision;
  if (training.residual_in_fp32 || precision == "bf16" || precision == "fp16") return Ok{};
  return wrong(fmt::format("training.residual_in_fp32 is false, and training.precision is {}: the residual "
                           "stream would be fp32 all the same",
                           precision),
               "set training.precision=bf16, or training.residual_in_fp32=true");
}

/// What must hold between settings; derives what follows from them.
Status check_run(RunConfig& config, const Given& given) {
  PLIMSOLL_TRY(check_data(config));
  PLIMSOLL_TRY(check_batch(config.training, given));
  PLIMSOLL_TRY(check_device(config.runtime.device));
  PLIMSOLL_TRY(check_optimizer(config, given));
  PLIMSOLL_TRY(check_precision(config.training));
  PLIMSOLL_TRY(check_loss_scale(config, given));
  PLIMSOLL_TRY(train::check_state(config.training, config.notes));
  if (config.training.eval_steps > 0 && !config.data.evaluates())
    return wrong("training.eval_steps is given, but data.eval names no data",
                 "set data.eval, or training.eval_steps=0");
  if (!config.output.dir.empty() && config.output.dir.size() > 4000)
    return wrong("output.dir is too long for a path", "shorten it");
  if (config.output.dir.empty()) return wrong("output.dir is empty", "name a folder");
  const std::string& name = config.training.lr_scheduler;
  if ((name == "constant" || name == "one_cycle") &&
      (config.training.warmup_steps > 0 || config.training.warmup_ratio.value_or(0) > 0))
    config.notes.push_back(
        fmt::format("training.lr_scheduler {} takes no warm-up: the one given has no effect", name));
  auto schedule = make_schedule(config.training, config.training.max_steps.value_or(1));
  if (!schedule) return std::move(schedule).error();
  return Ok{};
}

/// Settings whose other values nothing implements yet: a line goes when its feature comes.
struct Supported {
  std::string_view path;
  std::array<std::string_view, 4> values;
};
constexpr std::array<Supported, 5> kSupported = {{
    {"training.precision", {"fp32", "tf32", "bf16", "fp16"}},
    {"memory.recompute", {"auto", "none"}},
    {"memory.offload", {"auto", "none"}},
    {"runtime.device", {"cpu", ""}},
    {"runtime.profile", {"auto", ""}},
}};

/// Pretrained weights need a folder to lie in.
Status check_weights(const RunConfig& config) {
  if (!starts_pretrained(config.model) || !config.model.path.empty()) return Ok{};
  return wrong("model.init is pretrained, and no model.path says where the weights are",
               "set model.path to a Hugging Face model directory, or model.init=random");
}

Status check_supported(RunConfig& config) {
  for (const Supported& row : kSupported) {
    const std::string text = setting_text(*find_setting(row.path), config);
    if (std::find(row.values.begin(), row.values.end(), text) != row.values.end()) continue;
    std::string supported;
    for (const std::string_view value : row.values)
      if (!value.empty()) supported += fmt::format("{}{}", supported.empty() ? "" : ", ", value);
    return wrong(fmt::format("{} is {}, which is not supported yet", row.path, text.substr(0, 60)),
                 fmt::format("supported today: {}", supported));
  }
  const auto optimizers = optimizers::optimizer_names();
  if (std::find(optimizers.begin(), optimizers.end(), config.training.optimizer) == optimizers.end())
    return wrong(
        fmt::format("training.optimizer is {}, which is not supported yet", config.training.optimizer),
        fmt::format("supported today: {}", fmt::join(optimizers, ", ")));
  if (config.lora.enabled)
    return wrong("lora is not supported yet", "set lora=null: all parameters are trained");
  if (config.quantization.enabled) return wrong("quantization is not supported yet", "set quantization=null");
  return Ok{};
}

}  // namespace

bool RunConfig::dumps(std::string_view kind) const {
  return std::find(debug.dump.begin(), debug.dump.end(), kind) != debug.dump.end();
}

bool RunConfig::computes_in(std::string_view precision) const {
  const PrecisionOverrides& overrides = training.precision_overrides;
  return training.precision == precision || std::any_of(overrides.begin(), overrides.end(),
                                                        [&](const auto& o) { return o.second == precision; });
}

std::optional<double> RunConfig::clip_norm() const {
  if (training.max_grad_norm.value_or(0) > 0) return training.max_grad_norm;
  return {};
}

Result<RunConfig> parse_run_config(std::string_view text, const std::string& source,
                                   std::span<const std::string> overrides) {
  RunConfig config;
  Given given;
  auto document = parse_yaml(text);
  if (!document) return std::move(document).error().at(source);
  PLIMSOLL_TRY(apply(*document, source, config, given));
  for (const std::string& text_of_override : overrides) {
    PLIMSOLL_ASSIGN(const Tree tree, override_document(text_of_override));
    PLIMSOLL_TRY(apply(tree, "override " + text_of_override.substr(0, 100), config, given));
  }
  auto checked = check_run(config, given);
  if (!checked) return std::move(checked).error().at(source);
  auto supported = check_supported(config);
  if (!supported) return std::move(supported).error().at(source);
  return config;
}

Result<RunConfig> load_run_config(const std::string& path, std::span<const std::string> overrides) {
  auto text = read_small_file(path, TreeLimits{}.max_bytes, ErrorCode::kInvalidArgument);
  if (!text) {
    // Whatever keeps a run file from being read, it is the command line that named it.
    Error error = std::move(text).error();
    error.code = ErrorCode::kInvalidArgument;
    error.what = "run file: " + error.what;
    return error;
  }
  return parse_run_config(*text, path, overrides);
}

Status check_for_training(const RunConfig& config) {
  if (config.data.train.empty())
    return wrong("data.train names no data",
                 "set data.train to a .jsonl, .txt or .npy file, a list or a glob");
  return check_weights(config);
}

Status check_for_evaluation(const RunConfig& config) {
  if (!config.data.evaluates())
    return wrong("data.eval names no data", "set data.eval to a .jsonl, .txt or .npy file, a list or a glob");
  return check_weights(config);
}

Status check_against_model(const RunConfig& config, int64_t max_position_embeddings) {
  if (config.data.sequence_length <= max_position_embeddings) return Ok{};
  return wrong(fmt::format("data.sequence_length ({}) exceeds the model's {} positions",
                           config.data.sequence_length, max_position_embeddings),
               fmt::format("set data.sequence_length={}", max_position_embeddings));
}

std::optional<BatchSplit> fixed_batch_split(const TrainingSettings& training) {
  if (training.micro_batch_size)
    return BatchSplit{*training.micro_batch_size, training.global_batch_size / *training.micro_batch_size};
  if (training.gradient_accumulation_steps)
    return BatchSplit{training.global_batch_size / *training.gradient_accumulation_steps,
                      *training.gradient_accumulation_steps};
  return {};
}

int64_t total_steps(const TrainingSettings& training, int64_t num_sequences) {
  if (training.max_steps) return *training.max_steps;
  return steps_for_epochs(num_sequences, training.num_epochs.value_or(1.0), training.global_batch_size);
}

}  // namespace plimsoll
