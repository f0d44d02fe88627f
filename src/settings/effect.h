// Checks that each setting of a run is available and has an effect: refusals and notes from what each setting
// declares (Setting::field, available, only_with).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "settings/settings.h"

namespace plimsoll::settings {

/// How a setting came to be given.
struct Given {
  int document = 0;        ///< 0: the run file, then an override each: what comes later wins
  std::string name = {};   ///< as it was written
  std::string value = {};  ///< as YAML
  std::string where = {};  ///< "run.yaml line 12"
  bool asks = true;        ///< of a setting without a field: it does not say what holds without it
};
/// Settings set explicitly, by path; aliases by their own name.
using GivenSettings = std::map<std::string, Given, std::less<>>;

/// Whether what the setting goes by (Setting::only_with) is so in this run.
bool has_effect(const Setting& setting, const RunConfig& config);

/// Gives the setting its default.
void set_back(const Setting& setting, RunConfig& config);

/// What a value without effect leads to.
enum class Idle {
  kRefused,  ///< it is an error
  kPassed,   ///< nothing: a recorded run says what it says
};
/// Given settings without effect are set back to their defaults. Those that say what holds anyway, that one
/// file may carry for other runs (OnlyWith::is_noted) or whose effect a later document took away are told of
/// in config.notes; each other one is an error (kInvalidArgument). What is passed over counts as not given.
std::vector<Error> settle_idle(RunConfig& config, GivenSettings& given, Idle idle);

/// What is asked for and not there yet, an error each (kInvalidArgument): it names the setting and what to
/// do.
std::vector<Error> unavailable(const RunConfig& config, const GivenSettings& given);

}  // namespace plimsoll::settings
