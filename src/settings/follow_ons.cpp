#include "settings/follow_ons.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "settings/settings.h"
#include "settings/settings_alias.h"

namespace plimsoll::settings {
namespace {

using Paths = std::set<std::string_view>;

/// The settings that one word of a message names, by path. The subject of a message may name a section, and
/// so all that stands in it, or a setting of `training` by its last name; elsewhere such words are prose
/// ("names no data"), but for those with a dash, which are transformers' names or short ones.
void add_named(std::string_view word, bool is_subject, Paths& to) {
  const bool is_half_precision_name = is_subject || word.find('_') != std::string_view::npos;
  const Alias* alias = is_half_precision_name ? find_alias(word) : nullptr;
  const std::string path(alias != nullptr ? alias->path : word);
  for (const Setting& setting : settings())
    if (setting.path == path || (is_subject && setting.path.starts_with(path + ".")) ||
        (is_half_precision_name && setting.path == "training." + path))
      to.insert(setting.path);
}

void add_all_named(std::string_view text, Paths& to) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  bool is_subject = true;
  while (!text.empty()) {
    const auto end = std::find_if_not(text.begin(), text.end(), is_part);
    std::string_view word = text.substr(0, static_cast<size_t>(end - text.begin()));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    while (word.ends_with('.')) word.remove_suffix(1);
    if (word.empty()) continue;
    add_named(word, is_subject, to);
    is_subject = false;
  }
}

/// What is not settled after an error: what it speaks of, and what was meant by an unknown name.
void add_doubtful(const Error& error, Paths& to) {
  constexpr std::string_view kMeant = "did you mean ";
  add_all_named(error.what, to);
  const std::string_view hint = error.hint;
  if (hint.starts_with(kMeant)) add_all_named(hint.substr(kMeant.size()), to);
}

}  // namespace

void RunErrors::add(std::vector<Error> step) {
  Paths doubtful;
  for (const Error& earlier : errors_) add_doubtful(earlier, doubtful);
  for (Error& error : step) {
    Paths about;
    add_all_named(error.what, about);
    const bool follows = std::any_of(about.begin(), about.end(),
                                     [&](std::string_view path) { return doubtful.contains(path); });
    if (!follows) errors_.push_back(std::move(error));
  }
}

Error RunErrors::take() {
  Error first = std::move(errors_.front());
  for (size_t i = 1; i < errors_.size(); ++i) first.more.push_back(std::move(errors_[i]));
  errors_.clear();
  return first;
}

}  // namespace plimsoll::settings
