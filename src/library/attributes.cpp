#include "library/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "io/json.h"
#include "io/suggest.h"

namespace plimsoll::library {

Result<Attributes> Attributes::read(std::string_view op, std::string_view json,
                                    std::span<const AttributeSpec> specs) {
  Attributes attributes(op);
  io::Tree given = io::Tree::map();
  if (!json.empty()) {
    auto parsed = io::parse_json(json);
    if (!parsed || (parsed->kind != io::Tree::Kind::kMap && !parsed->is_null()))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: its attributes are no JSON object: {}", op,
                               parsed ? parsed->describe() : parsed.error().what)};
    given = std::move(*parsed);
  }
  for (const auto& [name, value] : given.members) {
    const auto is_it = [&, &key = name](const AttributeSpec& spec) { return spec.name == key; };
    if (std::ranges::any_of(specs, is_it)) continue;
    std::vector<std::string> names;
    for (const AttributeSpec& spec : specs) names.emplace_back(spec.name);
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: there is no attribute '{}'", op, name),
                 {},
                 names.empty() ? std::string("it takes none") : io::nearest_hint(name, names)};
  }
  for (const AttributeSpec& spec : specs) {
    const io::Tree* value = given.find(spec.name);
    if (value == nullptr && spec.value.empty())
      return Error{ErrorCode::kInvalidArgument, fmt::format("{}: attribute '{}' is missing", op, spec.name)};
    if (value != nullptr) {
      attributes.values_.set(spec.name, *value);
    } else {
      PLIMSOLL_ASSIGN(io::Tree otherwise, io::parse_json(spec.value));
      attributes.values_.set(spec.name, std::move(otherwise));
    }
  }
  return attributes;
}

const io::Tree& Attributes::value(std::string_view name) const {
  static const io::Tree kNone;
  const io::Tree* found = values_.find(name);
  return found == nullptr ? kNone : *found;
}

Error Attributes::wrong(std::string_view name, std::string_view expected) const {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: {} is {}, expected {}", op_, name, value(name).describe(), expected)};
}

void Attributes::expect(bool holds, std::string_view name, std::string_view expected) {
  if (!holds && !error_) error_ = wrong(name, expected);
}

double Attributes::number(std::string_view name) {
  const io::Tree& v = value(name);
  expect(v.kind == io::Tree::Kind::kNumber || v.kind == io::Tree::Kind::kInteger, name, "a number");
  return v.number;
}

int64_t Attributes::integer(std::string_view name) {
  const io::Tree& v = value(name);
  expect(v.kind == io::Tree::Kind::kInteger, name, "an integer");
  return v.integer;
}

bool Attributes::flag(std::string_view name) {
  const io::Tree& v = value(name);
  expect(v.kind == io::Tree::Kind::kBool, name, "true or false");
  return v.boolean;
}

std::string Attributes::text(std::string_view name) {
  const io::Tree& v = value(name);
  expect(v.kind == io::Tree::Kind::kString, name, "a text");
  return v.text;
}

std::string Attributes::word(std::string_view name, std::initializer_list<std::string_view> words) {
  const std::string given = text(name);
  const bool is_one = std::ranges::find(words, given) != words.end();
  expect(is_one, name, fmt::format("one of {}", fmt::join(words, ", ")));
  return is_one ? given : std::string(*words.begin());
}

std::vector<int64_t> Attributes::integers(std::string_view name) {
  const io::Tree& v = value(name);
  if (v.kind == io::Tree::Kind::kInteger) return {v.integer};
  std::vector<int64_t> list;
  bool holds = v.kind == io::Tree::Kind::kList;
  for (const io::Tree& item : v.items) {
    holds = holds && item.kind == io::Tree::Kind::kInteger;
    list.push_back(item.integer);
  }
  expect(holds, name, "a list of integers");
  return list;
}

Status Attributes::status() const {
  if (error_) return Error(*error_);
  return Ok{};
}

}  // namespace plimsoll::library
