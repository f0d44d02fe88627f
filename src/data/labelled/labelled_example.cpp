#include "data/labelled/labelled_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "data/text/json_members.h"
#include "data/text/reasons.h"

namespace plimsoll {
namespace {

using text::reason::kBadLabel;
using text::reason::kDuplicateKey;
using text::reason::kMissingField;
using text::reason::kNotAnObject;
using text::reason::kNotJson;
using text::reason::kWrongType;

class Parser {
 public:
  Parser(std::string_view json, const LabelledFormat& format, LabelledExample& example)
      : json_(json), format_(format), example_(example) {}

  std::optional<BadExample> run() {
    const std::string_view asked = format_.text_key;
    const std::string_view text_key = asked.empty() ? std::string_view("text") : asked;
    const std::string_view keys[] = {text_key, "text_pair", "input_ids", "label"};
    if (auto wrong = scan(keys)) return wrong;
    if (auto wrong = label()) return wrong;
    example_.has_ids = !find("input_ids").empty();
    example_.has_pair = false;
    if (example_.has_ids) return ids();
    if (auto wrong = string_into(text_key, example_.text)) return wrong;
    example_.has_pair = !find("text_pair").empty();
    return example_.has_pair ? string_into("text_pair", example_.text_pair) : std::nullopt;
  }

 private:
  [[nodiscard]] std::string_view find(std::string_view key) const { return text::find(members_, key); }

  BadExample bad(std::string_view reason, std::string what) const {
    return {reason,
            {ErrorCode::kBadData, std::move(what), place_of(example_.file, example_.line), text::kSkipHint}};
  }

  std::optional<BadExample> scan(text::Keys keys) {
    text::JsonScanner scanner(json_);
    std::string_view value;
    if (!scanner.value(value) || !scanner.expect_end())
      return bad(kNotJson, "the line is no JSON: " + scanner.error());
    if (!text::is_object(value))
      return bad(kNotAnObject, fmt::format("the line is {}, expected an object", text::type_name(value)));
    members_ = text::members_of(value, keys);
    for (const std::string_view key : keys) {
      const auto same = [key](const text::Member& member) { return member.key == key; };
      if (std::count_if(members_.begin(), members_.end(), same) > 1)
        return bad(kDuplicateKey, fmt::format("the line has \"{}\" twice", key));
    }
    return std::nullopt;
  }

  std::optional<BadExample> label() {
    const std::string_view value = format_.with_label ? find("label") : std::string_view();
    if (value.empty() && format_.with_label) return bad(kMissingField, "the line has no \"label\"");
    if (auto wrong = parse_raw_label(value, example_.label)) return bad(kBadLabel, std::move(*wrong));
    return std::nullopt;
  }

  std::optional<BadExample> string_into(std::string_view key, std::string& out) const {
    const std::string_view value = find(key);
    if (value.empty()) {
      const bool text = key != "text_pair";
      return bad(kMissingField,
                 fmt::format("the line has no \"{}\"{}", key, text ? ", nor \"input_ids\"" : ""));
    }
    if (!text::is_string(value))
      return bad(kWrongType, fmt::format("\"{}\" is {}, expected a string", key, text::type_name(value)));
    out.clear();
    text::append_unescaped(value, out);
    return std::nullopt;
  }

  std::optional<BadExample> ids() const {
    const std::string_view list = find("input_ids");
    if (!text::is_list(list))
      return bad(kWrongType, fmt::format("\"input_ids\" is {}, expected a list", text::type_name(list)));
    example_.ids.clear();
    text::ListItems items(list);
    for (std::string_view item; items.next(item);) {
      int32_t id = -1;
      const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), id);
      const bool integer = error == std::errc() && end == item.data() + item.size() && id >= 0;
      if (!integer || (format_.vocab_size > 0 && id >= format_.vocab_size))
        return bad(kWrongType,
                   fmt::format("\"input_ids\" holds {}, expected ids {}", item.substr(0, 40),
                               format_.vocab_size > 0 ? fmt::format("below {}", format_.vocab_size)
                                                      : std::string("from 0 on")));
      example_.ids.push_back(id);
    }
    return std::nullopt;
  }

  std::string_view json_;
  const LabelledFormat& format_;
  LabelledExample& example_;
  text::Members members_;
};

}  // namespace

std::optional<BadExample> parse_labelled_example(std::string_view json, const LabelledFormat& format,
                                                 LabelledExample& example) {
  return Parser(json, format, example).run();
}

}  // namespace plimsoll
