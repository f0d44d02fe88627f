// One document, a run file or an override, read into assignments of settings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/tree.h"
#include "settings/settings.h"

namespace plimsoll::settings {

/// One thing that a run file or an override says.
struct Assignment {
  const Setting* setting =
      nullptr;  ///< null: the optional section `section` is switched on (map) or off (null)
  std::string section = {};
  std::string name = {};  ///< as it was written
  io::Tree value = {};
  std::string where = {};   ///< "run.yaml line 12", "override training.seed=1"
  bool takes_back = false;  ///< bf16: false: an earlier document's value that is this one goes
  bool implied = false;     ///< follows from what was written, and is not itself there
};

/// A hostile document must not have each of its keys compared with every setting's.
inline constexpr size_t kMostErrors = 20;

/// What reading documents found beside their assignments.
struct Findings {
  std::vector<std::string> notes = {};     ///< lines about names that do nothing here
  std::vector<std::string> harmless = {};  ///< names of harmless_keys.h, each once
  std::vector<Error> errors = {};
};

/// Everything that `document` says, in its order, with transformers' names translated. What is wrong goes to
/// `found.errors`, up to kMostErrors, and the rest is read on: a key that is no setting (with the nearest,
/// where one is near), a value where a map should stand, a transformers value without an equal here, one
/// setting given twice with different values.
std::vector<Assignment> read_assignments(const io::Tree& document, const std::string& source,
                                         Findings& found);

/// The hint for an unknown `key`: "{r:8}" is one key to YAML, and a blank after the colon is missing;
/// otherwise `otherwise`.
std::string missing_blank_hint(std::string_view key, const io::Tree& value, std::string otherwise);

}  // namespace plimsoll::settings
