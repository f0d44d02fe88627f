// The registry of settings: each is declared once, in settings.cpp, and from there come parsing, checks,
// --help, the table in docs/settings.md and the recorded run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "io/tree.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// What the user asked for, which the planner never changes, or how it is run.
enum class SettingKind {
  kWhat,
  kContent,  ///< what, by the files that it names: a resume holds their content to its checkpoint, not its
             ///< text
  kHow
};

/// A setting's place in a RunConfig; its type decides what YAML it takes.
using SettingField =
    std::variant<bool*, int64_t*, double*, std::string*, Choice*, std::optional<bool>*,
                 std::optional<int64_t>*, std::optional<double>*, std::vector<std::string>*,
                 std::vector<double>*, std::array<double, 2>*, EvalFiles*, PrecisionOverrides*, ParamGroups*,
                 BucketSettings*, AugmentSettings*, MemoryBudget*, std::optional<Bytes>*, Bandwidth*,
                 Latency*, RecomputeSettings*, models::ModuleNames*, io::Tree*>;

/// What another setting has to say for a setting to have an effect.
struct OnlyWith {
  std::string path = {};                 ///< "training.optimizer"; empty: nothing, it always has one
  std::vector<std::string> values = {};  ///< one of these; empty: anything but null
  bool or_overrides = false;             ///< training.precision: or one of training.precision_overrides
  /// Without effect it is told of instead of refused: files carry it for runs with and without one.
  bool is_noted = false;
  /// Where that other setting has no effect itself, neither has this one; otherwise its default counts there.
  bool needs_effect = false;
};

/// One setting.
struct Setting {
  std::string path = {};  ///< "training.learning_rate"
  SettingKind kind = SettingKind::kHow;
  std::string help = {};                        ///< one line
  SettingField (*field)(RunConfig&) = nullptr;  ///< null: planned; a value that asks for something is refused
  double least = 0;                             ///< numbers: the range, both ends included
  double most = 0;
  bool above_least = false;                 ///< the lower end itself is excluded
  std::vector<std::string> choices = {};    ///< strings and lists: the allowed words; empty: any
  std::string absent = "null";              ///< optionals: the word for nothing (null | auto)
  std::vector<std::string> available = {};  ///< the values that this version has; empty: all
  std::string instead = {};                 ///< where one is refused: what to do
  OnlyWith only_with = {};
  bool is_path = false;       ///< of a file or folder, or of several
  bool is_of_rate = false;    ///< the learning rate and its course: a resume may ask for others
  bool is_for_tests = false;  ///< of this project: accepted, and in no help and no page of settings
};

/// All settings, in the order of the run file.
const std::vector<Setting>& settings();
/// The setting of that path, or null.
const Setting* find_setting(std::string_view path);

/// Reads `value` into the setting, which has a field. Errors: kInvalidArgument, "training.seed is 'x',
/// expected …".
Status assign_setting(const Setting& setting, const io::Tree& value, RunConfig& config);
/// The setting's value as YAML in one line ("3.0e-4", "auto", "[a, b]").
std::string setting_text(const Setting& setting, const RunConfig& config);
/// "an integer from 1 to 1048576", "one of fp32, bf16; planned: fp8": what the setting takes.
std::string setting_type(const Setting& setting);
/// Its line of help with what it goes by: "least share of the rate; only with training.lr_scheduler: wsd",
/// "rank of the adapters (not available in this version)".
std::string setting_help(const Setting& setting);

/// The run as a YAML run file: every setting that has an effect in it, with its value. Reads back to the same
/// RunConfig. Where `folder` is given, it is for a file in that folder that can be used from anywhere: it
/// says `paths: run_file`, and its paths start from there.
std::string run_config_yaml(const RunConfig& config, const std::string& folder = {});
/// Settings of kind kWhat in which two runs differ, by path: what a resume refuses (training.max_steps and
/// training.num_epochs may grow and are the caller's to judge).
std::vector<std::string> changed_what(const RunConfig& a, const RunConfig& b);
/// docs/settings.md.
std::string settings_markdown();
/// The settings' part of --help: path, default and help, lined up.
std::string settings_help();

}  // namespace plimsoll::settings
