// YAML through yaml-cpp's event interface: its own node tree is never built, depth and number of values are
// bounded as the events come, and an alias is a copy that counts. The library reports by exception, and only
// here.
#include "io/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <sstream>

#include "io/scalar.h"
#include "io/tree_builder.h"

namespace plimsoll::io {
namespace {

class YamlEvents : public YAML::EventHandler {
 public:
  explicit YamlEvents(const TreeLimits& limits) : builder(limits) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    scalar(mark, {.line = mark.line + 1}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) throw YAML::ParserException(mark, "an alias within its own anchor");
    scalar(mark, found->second, 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Tree tree;
    if (tag == "?" || tag.empty())  // unquoted, untagged
      tree = resolve_plain_scalar(value);
    else if (tag == "!" || tag == "tag:yaml.org,2002:str")
      tree = Tree::of(value);
    else
      throw YAML::ParserException(mark, "the tag " + tag.substr(0, 60) + " means nothing here");
    tree.line = mark.line + 1;
    scalar(mark, std::move(tree), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Tree::Kind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Tree::Kind::kMap);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  TreeBuilder builder;

 private:
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Tree::Kind kind) {
    if (tag != "?" && tag != "!" && !tag.empty())
      throw YAML::ParserException(mark, "the tag " + tag.substr(0, 60) + " means nothing here");
    check(mark, builder.open(kind, mark.line + 1));
    open_.push_back({mark, anchor});
  }
  void close() {
    const auto [mark, anchor] = open_.back();
    open_.pop_back();
    check(mark, builder.close(anchor ? &anchored_[anchor] : nullptr));
  }
  void scalar(const YAML::Mark& mark, Tree value, YAML::anchor_t anchor) {
    if (anchor) anchored_[anchor] = value;
    if (builder.wants_key()) {
      if (!value.is_scalar() || value.is_null()) throw YAML::ParserException(mark, "a key must be a word");
      check(mark, builder.key(std::move(value.text)));
    } else {
      check(mark, builder.add(std::move(value)));
    }
  }
  void check(const YAML::Mark& mark, bool ok) {
    if (!ok) throw YAML::ParserException(mark, builder.error());
  }

  struct Open {
    YAML::Mark mark;
    YAML::anchor_t anchor;
  };
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Tree> anchored_;
};

/// yaml-cpp reads from a stream; this one reads the text where it lies.
class TextBuffer : public std::streambuf {
 public:
  explicit TextBuffer(std::string& text) { setg(text.data(), text.data(), text.data() + text.size()); }
};

/// What usually causes the parser's complaint.
std::string hint_for(std::string_view why) {
  const auto says = [&](std::string_view words) { return why.find(words) != std::string_view::npos; };
  if (says("anchor") || says("alias")) return "put quotes around a value that starts with * or &";
  if (says("twice")) return "keep one of them";
  if (says("illegal map value") || says("tab"))
    return "indent with blanks, not tabs; put quotes around a value with ': '";
  if (says("should") || says("end of")) return "check that each bracket and quote is closed";
  if (says("means nothing")) return "remove the tag, or put quotes around the value";
  if (says("document")) return "keep one document: remove what follows ---";
  return "check indentation, brackets and quotes there";
}

}  // namespace

Result<Tree> parse_yaml(std::string_view text, const TreeLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.max_bytes)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("YAML of {} bytes, more than the {} allowed", text.size(), limits.max_bytes),
                 {},
                 "check that this is the text you meant"};
  std::string copy(text);
  TextBuffer buffer(copy);
  std::istream stream(&buffer);
  YamlEvents events(limits);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& error) {
    const std::string why = error.msg.empty() ? "cannot be read" : error.msg;
    const std::string place = error.mark.is_null() ? ""
                                                   : fmt::format(" at line {}, column {}",
                                                                 error.mark.line + 1, error.mark.column + 1);
    return Error{
        ErrorCode::kInvalidArgument, fmt::format("broken YAML{}: {}", place, why), {}, hint_for(why)};
  }
  if (!events.builder.done()) return Tree{};
  return events.builder.take();
}

}  // namespace plimsoll::io
