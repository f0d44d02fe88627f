// JSON through nlohmann's SAX parser, which does not recurse; the tree is built by TreeBuilder within its
// limits.
#include "io/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/tree_builder.h"

namespace plimsoll::io {
namespace {

class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonEvents(const TreeLimits& limits) : builder(limits) {}

  bool null() override { return builder.add({}); }
  bool boolean(bool value) override { return builder.add(Tree::of(value)); }
  bool number_integer(number_integer_t value) override { return builder.add(Tree::of(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return builder.add(Tree::of(static_cast<int64_t>(value)));
    return builder.add(Tree::of(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t& spelling) override {
    Tree tree = Tree::of(value);
    tree.text = spelling;
    return builder.add(std::move(tree));
  }
  bool string(string_t& value) override { return builder.add(Tree::of(std::move(value))); }
  bool binary(binary_t& /*value*/) override { return false; }  // JSON text has none
  bool start_object(size_t /*elements*/) override { return builder.open(Tree::Kind::kMap, 0); }
  bool key(string_t& name) override { return builder.key(std::move(name)); }
  bool end_object() override { return builder.close(); }
  bool start_array(size_t /*elements*/) override { return builder.open(Tree::Kind::kList, 0); }
  bool end_array() override { return builder.close(); }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    // "[json.exception…] parse error at line 1, column 2: syntax error while parsing value - what it is"
    std::string_view why = error.what();
    for (const std::string_view before : {"] ", "syntax error ", " - "})
      if (const size_t at = why.find(before); at != std::string_view::npos)
        why.remove_prefix(at + before.size());
      else if (before == "syntax error ")
        break;
    syntax_error = why.substr(0, 200);
    error_at = position;
    return false;
  }

  TreeBuilder builder;
  std::string syntax_error;
  size_t error_at = 0;  // bytes read
};

}  // namespace

Result<Tree> parse_json(std::string_view text, const TreeLimits& limits) {
  const auto broken = [](std::string what) {
    return Error{
        ErrorCode::kBadData, std::move(what), {}, "check the file: python3 -m json.tool shows the place"};
  };
  if (static_cast<int64_t>(text.size()) > limits.max_bytes)
    return broken(fmt::format("JSON of {} bytes, more than the {} allowed", text.size(), limits.max_bytes));
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    return broken(fmt::format("JSON: a zero byte at {}", zero));  // which the parser takes for the end
  JsonEvents events(limits);
  const bool ok = nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  if (!events.syntax_error.empty()) {
    const std::string_view read = text.substr(0, std::max<size_t>(events.error_at, 1) - 1);
    const size_t line_start = read.rfind('\n') + 1;  // npos + 1 is 0
    return broken(fmt::format("broken JSON at line {}, column {}: {}",
                              1 + std::count(read.begin(), read.end(), '\n'), read.size() - line_start + 1,
                              events.syntax_error));
  }
  if (!events.builder.error().empty()) return broken("JSON: " + events.builder.error());
  if (!ok || !events.builder.done()) return broken("JSON breaks off");
  return events.builder.take();
}

}  // namespace plimsoll::io
