// The registry of settings: each is declared once, in settings.cpp, and from there come parsing, checks,
// --help, the table in docs/settings.md and the recorded run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "io/tree.h"
#include "settings/run_config.h"

namespace plimsoll {

/// What the user asked for, which the planner never changes, or how it is run.
enum class SettingKind { kWhat, kHow };

/// A setting's place in a RunConfig; its type decides what YAML it takes.
using SettingField =
    std::variant<bool*, int64_t*, double*, std::string*, std::optional<bool>*, std::optional<int64_t>*,
                 std::optional<double>*, std::vector<std::string>*, std::vector<double>*, PrecisionOverrides*,
                 BucketSettings*, MemoryBudget*, RecomputeSettings*, Tree*>;

/// One setting.
struct Setting {
  std::string path = {};  ///< "training.learning_rate"
  SettingKind kind = SettingKind::kHow;
  std::string help = {};  ///< one line
  SettingField (*field)(RunConfig&) = nullptr;
  double least = 0;  ///< numbers: the range, both ends included
  double most = 0;
  bool above_least = false;               ///< the lower end itself is excluded
  std::vector<std::string> choices = {};  ///< strings and lists: the allowed words; empty: any
  std::string absent = "null";            ///< optionals: the word for nothing (null | auto)
};

/// All settings, in the order of the run file.
const std::vector<Setting>& settings();
/// The setting of that path, or null.
const Setting* find_setting(std::string_view path);

/// Reads `value` into the setting. Errors: kInvalidArgument, "training.seed is 'x', expected …".
Status assign_setting(const Setting& setting, const Tree& value, RunConfig& config);
/// The setting's value as YAML in one line ("3.0e-4", "auto", "[a, b]").
std::string setting_text(const Setting& setting, const RunConfig& config);
/// "integer from 1 to 1048576", "one of fp32, bf16": what the setting takes.
std::string setting_type(const Setting& setting);

/// The run as a YAML run file, every setting with its value. Reads back to the same RunConfig.
std::string run_config_yaml(const RunConfig& config);
/// Settings of kind kWhat in which two runs differ, by path: what a resume refuses (training.max_steps and
/// training.num_epochs may grow and are the caller's to judge).
std::vector<std::string> changed_what(const RunConfig& a, const RunConfig& b);
/// docs/settings.md.
std::string settings_markdown();
/// The settings' part of --help: path, default and help, lined up.
std::string settings_help();

}  // namespace plimsoll
