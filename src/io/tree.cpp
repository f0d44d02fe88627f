// The tree's own operations and its printing as one line of JSON or YAML.
#include "io/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/scalar.h"

namespace plimsoll::io {
namespace {

/// A string between double quotes, escaped so that both JSON and YAML read it back.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Whether YAML reads the text, unquoted and within [] or {}, as this very string.
bool is_plain_yaml(std::string_view text) {
  const auto safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '-' || c == '+';
  };
  if (text.empty() || text.front() == '-' || !std::all_of(text.begin(), text.end(), safe)) return false;
  return resolve_plain_scalar(std::string(text)).kind == Tree::Kind::kString;
}

std::string print(const Tree& tree, bool yaml) {
  switch (tree.kind) {
    case Tree::Kind::kNull:
      return "null";
    case Tree::Kind::kBool:
      return tree.boolean ? "true" : "false";
    case Tree::Kind::kInteger:
      return std::to_string(tree.integer);
    case Tree::Kind::kNumber:
      return yaml || std::isfinite(tree.number) ? number_text(tree.number) : "null";
    case Tree::Kind::kString:
      return yaml && is_plain_yaml(tree.text) ? tree.text : in_quotes(tree.text);
    case Tree::Kind::kList: {
      std::string out = "[";
      for (const Tree& item : tree.items) out += (out.size() > 1 ? ", " : "") + print(item, yaml);
      return out + "]";
    }
    case Tree::Kind::kMap: {
      std::string out = "{";
      for (const auto& [key, value] : tree.members) {
        const bool bare = yaml && is_plain_yaml(key);
        out += (out.size() > 1 ? ", " : "") + (bare ? key : in_quotes(key)) + ": " + print(value, yaml);
      }
      return out + "}";
    }
  }
  return {};
}

}  // namespace

Tree Tree::of(bool value) {
  return {.kind = Kind::kBool, .boolean = value, .text = value ? "true" : "false"};
}
Tree Tree::of(int64_t value) {
  return {.kind = Kind::kInteger,
          .integer = value,
          .number = static_cast<double>(value),
          .text = std::to_string(value)};
}
Tree Tree::of(double value) { return {.kind = Kind::kNumber, .number = value, .text = number_text(value)}; }
Tree Tree::of(std::string value) { return {.kind = Kind::kString, .text = std::move(value)}; }
Tree Tree::list(std::vector<Tree> values) { return {.kind = Kind::kList, .items = std::move(values)}; }
Tree Tree::map(std::vector<std::pair<std::string, Tree>> values) {
  return {.kind = Kind::kMap, .members = std::move(values)};
}

const Tree* Tree::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

void Tree::set(std::string_view key, Tree value) {
  kind = Kind::kMap;
  for (auto& [name, old] : members)
    if (name == key) {
      old = std::move(value);
      return;
    }
  members.emplace_back(std::string(key), std::move(value));
}

void Tree::merge(const Tree& over) {
  if (kind != Kind::kMap || over.kind != Kind::kMap) {
    *this = over;
    return;
  }
  for (const auto& theirs : over.members) {
    const auto mine =
        std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == theirs.first; });
    if (mine == members.end())
      members.push_back(theirs);
    else
      mine->second.merge(theirs.second);
  }
}

std::string Tree::describe() const {
  constexpr size_t kShown = 40;
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kString:
      return text.size() > kShown ? in_quotes(text.substr(0, kShown)) + "…" : in_quotes(text);
    case Kind::kBool:
    case Kind::kInteger:
    case Kind::kNumber:
      return text.size() > kShown ? text.substr(0, kShown) + "…" : text;
  }
  return {};
}

std::string to_json(const Tree& tree) { return print(tree, false); }
std::string to_yaml_flow(const Tree& tree) { return print(tree, true); }

std::string number_text(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  if (value == 0 && std::signbit(value)) return "-0.0";  // "-0" reads as an integer, which has no such zero
  return fmt::format("{}", value);
}

}  // namespace plimsoll::io
