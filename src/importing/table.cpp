// Rows of a table applied to keys.
#include "importing/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "io/suggest.h"
#include "settings/harmless_keys.h"

namespace plimsoll::importing {
namespace {

/// "theirs=ours|both|theirs=" as pairs.
std::vector<std::pair<std::string_view, std::string_view>> pairs_of(std::string_view words) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  while (!words.empty()) {
    const size_t bar = std::min(words.find('|'), words.size());
    const std::string_view word = words.substr(0, bar);
    const size_t equals = word.find('=');
    pairs.emplace_back(word.substr(0, equals),
                       equals == std::string_view::npos ? word : word.substr(equals + 1));
    words.remove_prefix(std::min(bar + 1, words.size()));
  }
  return pairs;
}

/// As is_one_of_values, where `yes` is true and `off` false too.
bool is_among(std::string_view words, const io::Tree& value) {
  if (settings::is_one_of_values(words, value)) return true;
  const auto is_on = value.kind == io::Tree::Kind::kString ? bool_in(value) : std::nullopt;
  return is_on && settings::is_one_of_values(words, io::Tree::of(*is_on));
}

void apply_words(const Row& row, const SourceKey& key, Draft& draft) {
  std::vector<std::string> known;
  for (const auto& [theirs, ours] : pairs_of(row.words)) {
    if (is_among(theirs, key.value)) {
      if (!ours.empty()) return draft.map_words(key, std::string(row.setting), ours, std::string(row.note));
      draft.leave_out(std::string(row.setting));
      return draft.no_equal(key, std::string(row.without), std::string(row.setting));
    }
    known.emplace_back(theirs);
  }
  draft.wrong(key, "another word", io::nearest_hint(key.value.text, known));
}

constexpr std::string_view kOff = "null|false|0|\"\"|[]|{}|none|no";

void apply(const Row& row, const SourceKey& key, Draft& draft) {
  const std::string note(row.note);
  if (key.value.is_null() && row.rule != Rule::kHarmless && row.rule != Rule::kNullToo)
    return draft.harmless(key, "null has no effect");
  switch (row.rule) {
    case Rule::kSame:
    case Rule::kNullToo:
      return draft.map(key, std::string(row.setting), key.value, note);
    case Rule::kWords:
      return apply_words(row, key, draft);
    case Rule::kHarmless:
      if (is_among(row.words, key.value)) return draft.harmless(key, note);
      return draft.no_equal(key, std::string(row.without.empty() ? row.note : row.without));
    case Rule::kIfThere:
      if (draft.can_take(std::string(row.setting), key.value))
        return draft.map(key, std::string(row.setting), key.value);
      [[fallthrough]];
    case Rule::kNoEqual:
      if (is_among(kOff, key.value)) return draft.harmless(key, "it is off");
      return draft.no_equal(key, note, std::string(row.setting));
    case Rule::kLater:
      return;
  }
}

}  // namespace

void apply_row(const SourceKey& key, Draft& draft) {
  if (draft.is_accounted(key)) return;
  const Row* row = find_row(key.dialect, key.pattern);
  if (row != nullptr) return apply(*row, key, draft);
  const bool is_trainer = key.dialect != Dialect::kTorchtune && key.dialect != Dialect::kDeepspeed;
  const settings::HarmlessKey* harmless =
      is_trainer ? settings::find_harmless_key(key.pattern.substr(0, key.pattern.find('.'))) : nullptr;
  if (harmless != nullptr) {
    if (is_among(harmless->values, key.value)) return draft.harmless(key, std::string(harmless->why));
    return draft.no_equal(key, harmless->hint.empty() ? "not available here" : std::string(harmless->hint));
  }
  const std::string nearest = nearest_key(key.dialect, key.pattern);
  draft.no_equal(key, nearest.empty()
                          ? fmt::format("{} has no such key that is known here", name_of(key.dialect))
                          : fmt::format("unknown; did you mean {}?", nearest));
}

}  // namespace plimsoll::importing
