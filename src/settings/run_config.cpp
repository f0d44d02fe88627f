// Loading a run: file, then overrides, each read into assignments and applied; then the checks of
// run_config_checks.h.
#include "settings/run_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "datasets/permutation.h"
#include "io/file.h"
#include "io/yaml.h"
#include "settings/distributed.h"
#include "settings/follow_ons.h"
#include "settings/run_config_checks.h"
#include "settings/run_document.h"
#include "settings/run_paths.h"
#include "settings/settings.h"
#include "settings/settings_alias.h"

namespace plimsoll::settings {
namespace {

/// Settings of which a run has one: setting another later takes the earlier back, setting two at once
/// contradicts.
constexpr std::array<std::array<std::string_view, 3>, 3> kExclusive = {{
    {"model.path", "model.preset", "model.config"},
    {"training.max_steps", "training.num_epochs", ""},
    {"training.warmup_steps", "training.warmup_ratio", ""},
}};

/// Whether the value takes part in an exclusive group: null and a warm-up of 0 do not.
bool says_something(const io::Tree& value) {
  const bool zero =
      (value.kind == io::Tree::Kind::kInteger || value.kind == io::Tree::Kind::kNumber) && value.number == 0;
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
      PLIMSOLL_TRY(
          assign_setting(*find_setting(other), count ? io::Tree::of(int64_t{0}) : io::Tree{}, config));
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

/// Of a setting that is known by its name alone: whether this value asks for something.
bool asks(const Setting& setting, const io::Tree& value) {
  return !value.is_null() && std::find(setting.available.begin(), setting.available.end(),
                                       io::to_yaml_flow(value)) == setting.available.end();
}

/// The value with what an earlier document says by another of the setting's names, where they belong
/// together.
io::Tree with_earlier(const Assignment& made, const GivenSettings& given) {
  const auto before = given.find(made.setting->path);
  if (before == given.end()) return made.value;
  const io::Tree earlier = io::Tree::of(before->second.value);
  return together(made.name, made.value, before->second.name, earlier).value_or(made.value);
}

/// Overrides that give one setting by different names and values, such as bf16=true fp16=true. A later
/// override wins over an earlier one of the same name, and over the file.
Status check_other_names(const Assignment& made, int number, const GivenSettings& given) {
  const auto before = given.find(made.setting->path);
  if (before == given.end() || number == 0 || before->second.document == 0) return Ok{};
  const Given& earlier = before->second;
  const bool is_alias = find_alias(made.name) != nullptr || find_alias(earlier.name) != nullptr;
  if (earlier.name == made.name || !is_alias || earlier.value == io::to_yaml_flow(made.value)) return Ok{};
  if (together(made.name, made.value, earlier.name, io::Tree::of(earlier.value))) return Ok{};
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} and {} contradict", earlier.name, made.name),
               made.where, "keep one of them"};
}

/// bf16: false where an earlier document said bf16: true: the default is back.
void take_back(const Assignment& made, int number, RunConfig& config, const GivenSettings& given) {
  const auto before = given.find(made.setting->path);
  if (before == given.end() || before->second.document == number) return;
  if (setting_text(*made.setting, config) == made.value.text) set_back(*made.setting, config);
}

/// The document `number`, the file (0) or an override, put over the config. What is wrong in it goes to
/// `found.errors`.
void apply(const io::Tree& document, const std::string& source, int number, RunConfig& config,
           GivenSettings& given, Findings& found) {
  std::vector<Error>& errors = found.errors;
  const auto assignments = read_assignments(document, source, found);
  for (const Assignment& made : assignments) {
    if (errors.size() >= kMostErrors) return;
    if (!made.setting) {
      switch_section(made, config);
      given[made.section] = {.document = number, .where = made.where};
      continue;
    }
    if (made.takes_back) {
      take_back(made, number, config, given);
      continue;
    }
    Status status = check_other_names(made, number, given);
    const io::Tree value = with_earlier(made, given);
    if (status) status = assign_setting(*made.setting, value, config);
    if (!status) {
      Error error = std::move(status).error();
      errors.push_back(error.where.empty() ? std::move(error).at(made.where) : std::move(error));
      continue;
    }
    status = take_back_others(made, assignments, config);
    if (!status) errors.push_back(std::move(status).error());
    if (made.implied) continue;
    const Given how = {number, made.name, io::to_yaml_flow(value), made.where, asks(*made.setting, value)};
    given[made.setting->path] = given[made.name] = how;
  }
}

/// "a.b=value" as the document {a: {b: value}}.
Result<io::Tree> override_document(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' is no override", text.substr(0, 100)),
                 {},
                 "write key=value, for example training.max_steps=10"};
  const std::string_view value_text = std::string_view(text).substr(equals + 1);
  // An alias or a directive has no meaning in a single value, a glob or a sign has.
  const bool plain = value_text.starts_with('*') || value_text.starts_with('%');
  auto value = plain ? Result<io::Tree>(io::Tree::of(std::string(value_text))) : io::parse_yaml(value_text);
  if (!value) return std::move(value).error().at("override " + text.substr(0, 100));
  value->line = 0;
  io::Tree document = std::move(*value);
  std::string_view path = std::string_view(text).substr(0, equals);
  for (int depth = 0; !path.empty(); ++depth) {
    if (depth > 32)
      return Error{
          ErrorCode::kInvalidArgument, "an override with too many dots", {}, "see --help for the settings"};
    const size_t dot = path.rfind('.');
    const std::string_view last = dot == std::string_view::npos ? path : path.substr(dot + 1);
    document = io::Tree::map({{std::string(last), std::move(document)}});
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
  }
  return document;
}

/// One note for all harmless names: files carry dozens.
void tell_harmless(const std::vector<std::string>& names, std::vector<std::string>& notes) {
  if (names.empty()) return;
  notes.push_back(
      fmt::format("ignored {}: always on here, or without effect; docs/settings.md has the reasons",
                  fmt::join(names, ", ")));
}

/// All that is said, put over the defaults.
Findings read_documents(const io::Tree& file, const std::string& source,
                        std::span<const std::string> overrides, RunConfig& config, GivenSettings& given) {
  Findings found;
  apply(file, source, 0, config, given, found);
  if (config.paths == PathBase::kRunFile) resolve_paths(config, io::folder_of(source));
  config.paths = PathBase::kWorkingFolder;
  int number = 0;
  for (const std::string& text_of_override : overrides) {
    if (found.errors.size() >= kMostErrors) break;
    auto tree = override_document(text_of_override);
    if (tree)
      apply(*tree, "override " + text_of_override.substr(0, 100), ++number, config, given, found);
    else
      found.errors.push_back(std::move(tree).error());
  }
  if (config.paths == PathBase::kRunFile)
    found.errors.push_back({ErrorCode::kInvalidArgument, "paths belongs into the run file",
                            given["paths"].where,
                            "leave it out: an override's paths start from the working folder"});
  config.notes.insert(config.notes.end(), found.notes.begin(), found.notes.end());
  tell_harmless(found.harmless, config.notes);
  return found;
}

/// Errors of checks, which do not know the file.
std::vector<Error> all_at(const std::string& source, std::vector<Error> errors) {
  for (Error& error : errors) error = std::move(error).at(source);
  return errors;
}

/// File and overrides, checked. A check of what a wrong value left unsaid would mislead: RunErrors.
Result<RunConfig> parse(std::string_view text, const std::string& source,
                        std::span<const std::string> overrides, Idle idle, RunUse use) {
  RunConfig config;
  GivenSettings given;
  auto document = io::parse_yaml(text);
  if (!document) return std::move(document).error().at(source);
  RunErrors errors;
  Findings found = read_documents(*document, source, overrides, config, given);
  constexpr size_t kNamesOfAnother = 3;  // by accident a file has none
  const bool is_another_programs = found.harmless.size() >= kNamesOfAnother;
  errors.add(std::move(found.errors));
  if (auto settled = settle_task(config, given); !settled)
    errors.add({std::move(settled).error().at(source)});
  errors.add(settle_idle(config, given, idle));
  errors.add(all_at(source, check_run(config, given)));
  errors.add(unavailable(config, given));
  errors.add(all_at(source, missing_for(config, use)));
  if (errors.empty()) return config;
  Error error = errors.take();
  if (is_another_programs && !error.more.empty())
    error.more.back().hint +=
        "; the file reads like transformers' arguments: plimsoll import makes a run file of such";
  return error;
}

}  // namespace

std::vector<EvalFiles::Set> EvalFiles::sets() const {
  std::vector<Set> sets;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& name = names.empty() ? std::string() : names[i];
    if (sets.empty() || sets.back().name != name) sets.push_back({name});
    sets.back().files.push_back(files[i]);
  }
  return sets;
}

size_t DataSettings::num_eval_parts() const {
  if (eval_fraction > 0) return std::max<size_t>(1, weights.size());
  return std::max<size_t>(1, eval.sets().size());
}

bool RunConfig::dumps(std::string_view kind) const {
  return std::find(debug.dump.begin(), debug.dump.end(), kind) != debug.dump.end();
}

bool RunConfig::computes_in(Precision precision) const {
  const PrecisionOverrides& overrides = training.precision_overrides;
  const bool beside_fp8 = precision == Precision::kBf16 && training.precision == Precision::kFp8;
  return training.precision == precision || beside_fp8 ||
         std::any_of(overrides.begin(), overrides.end(),
                     [&](const auto& o) { return o.second == precision; });
}

std::string RunConfig::event_folder() const {
  const std::string folder = training.logging_dir.empty() ? output.dir + "/runs" : training.logging_dir;
  return training.run_name.empty() ? folder : folder + "/" + training.run_name;
}

std::optional<double> RunConfig::clip_norm() const {
  if (training.max_grad_norm.value_or(0) > 0) return training.max_grad_norm;
  return {};
}

Result<RunConfig> parse_run_config(std::string_view text, const std::string& source,
                                   std::span<const std::string> overrides, RunUse use) {
  PLIMSOLL_ASSIGN(RunConfig config, parse(text, source, overrides, Idle::kRefused, use));
  config.source = std::make_shared<const RunSource>(
      RunSource{std::string(text), source, {overrides.begin(), overrides.end()}});
  return config;
}

Result<RunConfig> with_overrides(const RunConfig& config, std::span<const std::string> more) {
  if (!config.source) return parse_run_config(run_config_yaml(config), "run.yaml", more);
  std::vector<std::string> overrides = config.source->overrides;
  overrides.insert(overrides.end(), more.begin(), more.end());
  return parse_run_config(config.source->text, config.source->name, overrides);
}

Result<std::vector<std::string>> settings_of_override(const std::string& text) {
  PLIMSOLL_ASSIGN(const io::Tree document, override_document(text));
  std::vector<std::string> paths;
  Findings found;
  for (const Assignment& made : read_assignments(document, "override " + text.substr(0, 100), found))
    paths.push_back(made.setting == nullptr ? made.section : made.setting->path);
  RunErrors errors;
  errors.add(std::move(found.errors));
  if (!errors.empty()) return errors.take();
  return paths;
}

Result<RunConfig> parse_recorded_run(std::string_view text, const std::string& source) {
  return parse(text, source, {}, Idle::kPassed, RunUse::kPlan);
}

namespace {

Result<std::string> read_run_file(const std::string& path) {
  auto text = io::read_small_file(path, io::TreeLimits{}.max_bytes, ErrorCode::kInvalidArgument);
  if (text) return text;
  // Whatever keeps a run file from being read, it is the command line that named it.
  Error error = std::move(text).error();
  error.code = ErrorCode::kInvalidArgument;
  error.what = "run file: " + error.what;
  return error;
}

}  // namespace

Result<RunConfig> load_run_config(const std::string& path, std::span<const std::string> overrides,
                                  RunUse use) {
  PLIMSOLL_ASSIGN(const std::string text, read_run_file(path));
  return parse_run_config(text, path, overrides, use);
}

Result<DistributedSettings> load_distributed(const std::string& path,
                                             std::span<const std::string> overrides) {
  PLIMSOLL_ASSIGN(const std::string text, read_run_file(path));
  auto document = io::parse_yaml(text);
  if (!document) return std::move(document).error().at(path);
  RunConfig config;
  GivenSettings given;
  RunErrors errors;
  errors.add(read_documents(*document, path, overrides, config, given).errors);
  if (!errors.empty()) return errors.take();
  return config.distributed;
}

std::optional<BatchSplit> fixed_batch_split(const TrainingSettings& training) {
  if (training.micro_batch_size)
    return BatchSplit{*training.micro_batch_size, training.global_batch_size / *training.micro_batch_size};
  if (training.gradient_accumulation_steps)
    return BatchSplit{training.global_batch_size / *training.gradient_accumulation_steps,
                      *training.gradient_accumulation_steps};
  return {};
}

TrainingSettings training_of_rank(const TrainingSettings& training, int64_t ranks) {
  TrainingSettings own = training;
  if (ranks == 1) return own;
  const int64_t share = ceil_div(training.global_batch_size, ranks);
  own.global_batch_size = round_up(
      share, training.micro_batch_size.value_or(1) * training.gradient_accumulation_steps.value_or(1));
  return own;
}

int64_t total_steps(const TrainingSettings& training, int64_t num_sequences) {
  if (training.max_steps) return *training.max_steps;
  return datasets::steps_for_epochs(num_sequences, training.num_epochs.value_or(1.0),
                                    training.global_batch_size);
}

}  // namespace plimsoll::settings
