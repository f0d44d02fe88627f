// Names of transformers' TrainingArguments (versions 4 and 5, and of scripts around them) for which nothing
// has to exist here: with some of their values a run means the same without them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::settings {

struct HarmlessKey {
  std::string_view name;
  /// The values with which it says nothing here, as YAML in lower case, between bars: "false|null". "*": any.
  std::string_view values;
  std::string_view why;        ///< why it says nothing then
  std::string_view hint = "";  ///< for another value: what there is instead
};

std::span<const HarmlessKey> harmless_keys();
/// The key of that name, or null.
const HarmlessKey* find_harmless_key(std::string_view name);
/// Whether `value` is one of the `values` of a HarmlessKey.
bool is_one_of_values(std::string_view values, const io::Tree& value);
/// For a value that asks for something: what is wrong and what to do.
Error asks_for_more(const HarmlessKey& key, const io::Tree& value, std::string where);

/// The list of them in docs/settings.md.
std::string harmless_markdown();

}  // namespace plimsoll::settings
