// A foreign configuration as it was written: a list of keys with their values and places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::importing {

/// Whose configuration it is.
enum class Dialect { kTransformers, kTrl, kTorchtune, kAxolotl, kDeepspeed };

/// "transformers": the word of --from.
std::string_view name_of(Dialect dialect);
std::vector<std::string> dialect_names();

/// One thing that the source says.
struct SourceKey {
  std::string file = {};
  std::string name = {};  ///< dotted, items of a list as "datasets[0].path"
  std::string pattern =
      {};               ///< the name that tables know: "datasets[].path", and transformers' where it has one
  io::Tree value = {};  ///< a scalar, a list of scalars, or an empty map
  Dialect dialect = Dialect::kTransformers;

  /// "args.yaml line 7".
  [[nodiscard]] std::string place() const;
};

/// A file, read.
struct Source {
  std::string file = {};
  Dialect dialect = Dialect::kTransformers;
  std::vector<SourceKey> keys = {};
};

/// The text of a file, YAML or JSON, as a source; `from` names its dialect, or it is empty and is told by the
/// keys. A DeepSpeed configuration within transformers' is a source of its own.
/// Errors (kInvalidArgument): text that is neither or not UTF-8, too large, too deep, a key twice, no map of
/// settings, an unknown dialect, keys that are nobody's.
Result<std::vector<Source>> read_source(std::string_view text, const std::string& file,
                                        const std::string& from);

}  // namespace plimsoll::importing
