// The names that people bring from transformers, and reading one document into assignments of settings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/tree.h"
#include "settings/settings.h"

namespace plimsoll {

/// One thing that a run file or an override says.
struct Assignment {
  const Setting* setting =
      nullptr;  ///< null: the optional section `section` is switched on (map) or off (null)
  std::string section = {};
  std::string name = {};  ///< as it was written
  Tree value = {};
  std::string where = {};  ///< "run.yaml line 12", "override training.seed=1"
};

/// Everything that `document` says, in its order, with transformers' names translated. Lines about names that
/// do nothing here go to `notes`. Errors: kInvalidArgument for a key that is no setting (naming the nearest),
/// a value where a map should stand, a transformers value without an equal here, one setting given twice with
/// different values.
Result<std::vector<Assignment>> read_assignments(const Tree& document, const std::string& source,
                                                 std::vector<std::string>& notes);

/// The hint for an unknown `key`: "{r:8}" is one key to YAML, and a blank after the colon is missing;
/// otherwise `otherwise`.
std::string missing_blank_hint(std::string_view key, const Tree& value, std::string otherwise);

/// The table of transformers' names in docs/settings.md.
std::string alias_markdown();

}  // namespace plimsoll
