#include "corpora/labelled/labelled_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "corpora/json_members.h"
#include "corpora/reasons.h"

namespace plimsoll::corpora {
namespace {

using corpora::reason::kBadLabel;
using corpora::reason::kDuplicateKey;
using corpora::reason::kMissingField;
using corpora::reason::kNotAnObject;
using corpora::reason::kNotJson;
using corpora::reason::kWrongType;

/// The members that hold a line's texts.
struct TextNames {
  std::string_view text, pair;
};

class Parser {
 public:
  Parser(std::string_view json, const LabelledFormat& format, LabelledExample& example)
      : json_(json), format_(format), example_(example) {}

  std::optional<BadExample> run() {
    const std::string_view asked = format_.text_key;
    std::vector<std::string_view> keys = {"text_pair", "input_ids",      "label",
                                          "labels",    "attention_mask", "token_type_ids"};
    keys.push_back(asked.empty() ? std::string_view("text") : asked);
    if (asked.empty()) keys.insert(keys.end(), std::begin(kPairColumns), std::end(kPairColumns));
    if (auto wrong = scan(keys)) return wrong;
    if (auto wrong = label()) return wrong;
    example_.has_ids = !find("input_ids").empty();
    example_.has_pair = false;
    if (example_.has_ids) return ids();
    TextNames names{asked.empty() ? std::string_view("text") : asked, "text_pair"};
    if (asked.empty() && find("text").empty())
      if (auto wrong = choose_columns(names)) return wrong;
    if (auto wrong = string_into(names.text, example_.text)) return wrong;
    example_.has_pair = !find(names.pair).empty();
    return example_.has_pair ? string_into(names.pair, example_.text_pair) : std::nullopt;
  }

 private:
  [[nodiscard]] std::string_view find(std::string_view key) const { return corpora::find(members_, key); }

  BadExample bad(std::string_view reason, std::string what) const {
    return {reason,
            {ErrorCode::kBadData, std::move(what), place_of(example_.file, example_.line), kSkipHint}};
  }

  std::optional<BadExample> scan(Keys keys) {
    JsonScanner scanner(json_);
    std::string_view value;
    if (!scanner.value(value) || !scanner.expect_end())
      return bad(kNotJson, "the line is no JSON: " + scanner.error());
    if (!is_object(value))
      return bad(kNotAnObject, fmt::format("the line is {}, expected an object", type_name(value)));
    members_ = members_of(value, keys);
    for (const std::string_view key : keys) {
      const auto same = [key](const Member& member) { return member.key == key; };
      if (std::count_if(members_.begin(), members_.end(), same) > 1)
        return bad(kDuplicateKey, fmt::format("the line has \"{}\" twice", key));
    }
    return std::nullopt;
  }

  /// The columns of a public data set's pairs; an error where the line has those of several.
  std::optional<BadExample> choose_columns(TextNames& names) const {
    if (!find("text_pair").empty()) return std::nullopt;  // told by what is missing
    const TextNames* found = nullptr;
    for (const TextNames& columns : kPairs) {
      if (find(columns.text).empty() || find(columns.pair).empty()) continue;
      if (found != nullptr)
        return hinted(
            bad(kMissingField, fmt::format("the line has no \"text\", and both \"{}\" and \"{}\" may be it",
                                           found->text, columns.text)));
      found = &columns;
    }
    if (found != nullptr)
      names = *found;
    else if (!find("sentence").empty())
      names.text = "sentence";
    return std::nullopt;
  }

  static BadExample hinted(BadExample wrong) {
    wrong.error.hint =
        "rename the columns: \"text\", \"text_pair\" where there are two, \"label\"; data.text_key names "
        "another "
        "one that holds the text";
    return wrong;
  }

  std::optional<BadExample> label() {
    std::string_view value;
    if (format_.with_label) {
      value = find("label");
      if (const std::string_view labels = find("labels"); value.empty())
        value = labels;  // as transformers' collators have it
      else if (!labels.empty() && labels != value)
        return bad(kBadLabel, "the line's \"label\" and \"labels\" differ");
      if (value.empty()) return hinted(bad(kMissingField, "the line has no \"label\""));
    }
    if (auto wrong = parse_raw_label(value, example_.label)) return bad(kBadLabel, std::move(*wrong));
    return std::nullopt;
  }

  std::optional<BadExample> string_into(std::string_view key, std::string& out) const {
    const std::string_view value = find(key);
    if (value.empty()) {
      const bool text = key != "text_pair";
      BadExample wrong =
          bad(kMissingField, fmt::format("the line has no \"{}\"{}", key, text ? ", nor \"input_ids\"" : ""));
      return format_.text_key.empty() ? hinted(std::move(wrong)) : wrong;
    }
    if (!is_string(value))
      return bad(kWrongType, fmt::format("\"{}\" is {}, expected a string", key, type_name(value)));
    out.clear();
    append_unescaped(value, out);
    return std::nullopt;
  }

  std::optional<BadExample> ids() const {
    example_.types.clear();
    if (auto wrong = integers("input_ids", "ids", format_.vocab_size, example_.ids)) return wrong;
    if (auto wrong = token_types()) return wrong;
    return leave_out_padding();
  }

  /// The list of integers that `key` holds, from 0 to below `end`; 0: all that there are.
  std::optional<BadExample> integers(std::string_view key, std::string_view what, int64_t end,
                                     std::vector<int32_t>& out) const {
    const std::string_view list = find(key);
    if (!is_list(list))
      return bad(kWrongType, fmt::format("\"{}\" is {}, expected a list", key, type_name(list)));
    out.clear();
    ListItems items(list);
    for (std::string_view item; items.next(item);) {
      int32_t value = -1;
      const auto [rest, error] = std::from_chars(item.data(), item.data() + item.size(), value);
      const bool integer = error == std::errc() && rest == item.data() + item.size() && value >= 0;
      if (!integer || (end > 0 && value >= end))
        return bad(kWrongType,
                   fmt::format("\"{}\" holds {}, expected {} {}", key, item.substr(0, 40), what,
                               end > 0 ? fmt::format("below {}", end) : std::string("from 0 on")));
      out.push_back(value);
    }
    return std::nullopt;
  }

  std::optional<BadExample> token_types() const {
    if (format_.num_token_types == 0 || find("token_type_ids").empty()) return std::nullopt;
    if (auto wrong = integers("token_type_ids", "types", format_.num_token_types, example_.types))
      return wrong;
    if (example_.types.size() != example_.ids.size())
      return bad(kWrongType, fmt::format("\"token_type_ids\" has {} values, \"input_ids\" {}",
                                         example_.types.size(), example_.ids.size()));
    return std::nullopt;
  }

  /// What the attention mask hides.
  std::optional<BadExample> leave_out_padding() const {
    const std::string_view list = find("attention_mask");
    if (list.empty()) return std::nullopt;
    std::vector<uint8_t> seen;
    if (is_list(list)) {
      ListItems items(list);
      for (std::string_view item; items.next(item);) seen.push_back(item != "0");
    }
    if (seen.size() != example_.ids.size())
      return bad(kWrongType, fmt::format("\"attention_mask\" has {} values, \"input_ids\" {}", seen.size(),
                                         example_.ids.size()));
    for (std::vector<int32_t>* values : {&example_.ids, &example_.types}) {
      size_t i = 0;
      std::erase_if(*values, [&](int32_t) { return seen[i++] == 0; });
    }
    return std::nullopt;
  }

  /// In the benchmarks' files: GLUE's, SNLI's and those of questions.
  static constexpr TextNames kPairs[] = {{"sentence1", "sentence2"},
                                         {"premise", "hypothesis"},
                                         {"question1", "question2"},
                                         {"question", "answer"},
                                         {"question", "sentence"}};
  std::string_view json_;
  const LabelledFormat& format_;
  LabelledExample& example_;
  Members members_;
};

}  // namespace

std::optional<BadExample> parse_labelled_example(std::string_view json, const LabelledFormat& format,
                                                 LabelledExample& example) {
  return Parser(json, format, example).run();
}

}  // namespace plimsoll::corpora
