// A foreign configuration as a run file: read, mapped by its dialect's table, written and checked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "importing/draft.h"
#include "io/tree.h"

namespace plimsoll::importing {

struct InputFile {
  std::string name = {};
  std::string text = {};
};

/// A run file with what became of each key.
struct Imported {
  std::string run_file = {};         ///< YAML, a comment on each line; parse_run_config takes it
  std::vector<KeyReport> keys = {};  ///< every key of the sources, in their order
  std::vector<std::pair<std::string, Line>> defaults = {};        ///< lines that no key says
  std::vector<std::pair<std::string, std::string>> fill_in = {};  ///< what the user has still to say, and why

  [[nodiscard]] int64_t count(Fate fate) const;
};

/// Several files are one run: a DeepSpeed configuration goes beside the arguments that its "auto" stands for.
/// `from` names the dialect of what is not DeepSpeed's; empty: told by the keys.
/// Errors (kInvalidArgument): files that cannot be read as a configuration, bad values and contradictions,
/// all together.
Result<Imported> import_run(std::span<const InputFile> files, const std::string& from);

/// {"event": "import", "keys": [{"key", "value", "status", "setting", "note"}], …}.
io::Tree import_event(const Imported& imported);

/// The draft's run file: settings by section, then what is harmless and what has no equal, as comments.
std::string run_file_text(const Draft& draft, const std::vector<KeyReport>& keys);

/// The value of a key as it is shown: a token of the hub is not.
io::Tree shown_value(const SourceKey& key);

}  // namespace plimsoll::importing
