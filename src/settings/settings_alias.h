// transformers' TrainingArguments by name: which setting each means, and how its value is read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::settings {

struct Alias {
  std::string_view name;  ///< "per_device_train_batch_size"
  std::string_view path;  ///< the setting that it means; empty: none, it does nothing here
  /// Its value in the setting's own terms; nothing where it says nothing (bf16: false). Errors:
  /// kInvalidArgument for a value without an equal here.
  Result<std::optional<io::Tree>> (*translate)(std::string_view name, const io::Tree& value);
  std::string_view note;             ///< a line for the user
  std::string_view takes_back = "";  ///< the value that true stands for: a later false takes it back
};

std::span<const Alias> aliases();
/// The alias of that name, or null.
const Alias* find_alias(std::string_view name);

/// What two names of one setting mean together, where they say what neither says alone: TRL's
/// assistant_only_loss: false with completion_only_loss: true. Values are in the setting's own terms.
std::optional<io::Tree> together(std::string_view name, const io::Tree& value, std::string_view other_name,
                                 const io::Tree& other);

/// The table of transformers' names in docs/settings.md.
std::string alias_markdown();

}  // namespace plimsoll::settings
