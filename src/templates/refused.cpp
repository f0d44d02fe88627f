// The names follow Jinja2 3.1's reference and Python's of str, dict, list and tuple. What is left out was
// counted over 300 files of templates of public models (docs/data.md).
#include "templates/refused.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "templates/print.h"

namespace plimsoll::templates {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kFilters[] = {
    "abs",       "attr",        "batch",     "center",   "e",         "escape", "filesizeformat",
    "float",     "forceescape", "format",    "groupby",  "max",       "min",    "pprint",
    "random",    "reverse",     "round",     "slice",    "striptags", "sum",    "truncate",
    "urlencode", "urlize",      "wordcount", "wordwrap", "xmlattr"};
constexpr std::string_view kRefusedTests[] = {
    "<",           "<=", ">",  ">=",       "callable", "divisibleby", "escaped", "even",   "filter", "ge",
    "greaterthan", "gt", "le", "lessthan", "lower",    "lt",          "odd",     "sameas", "test",   "upper"};
constexpr std::string_view kTags[] = {"autoescape", "block",   "do",  "extends", "from",
                                      "import",     "include", "raw", "trans",   "with"};
constexpr std::string_view kRefusedFunctions[] = {"cycler", "joiner", "lipsum"};

constexpr std::string_view kText[] = {
    "casefold",   "center",       "count",        "encode",   "expandtabs", "find",
    "format",     "format_map",   "index",        "isalnum",  "isalpha",    "isascii",
    "isdecimal",  "isdigit",      "isidentifier", "islower",  "isnumeric",  "isprintable",
    "isspace",    "istitle",      "isupper",      "join",     "ljust",      "maketrans",
    "partition",  "removeprefix", "removesuffix", "rfind",    "rindex",     "rjust",
    "rpartition", "rsplit",       "splitlines",   "swapcase", "translate",  "zfill"};
constexpr std::string_view kSequence[] = {"copy", "count", "index"};
constexpr std::string_view kDict[] = {"copy", "fromkeys"};
constexpr std::string_view kChangesDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kChangesList[] = {"append", "clear",  "extend",  "insert",
                                             "pop",    "remove", "reverse", "sort"};

constexpr std::string_view kWhy = "is not supported: templates of public models do without it";

bool is_in(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Names names_of(Construct construct) {
  switch (construct) {
    case Construct::kFilter:
      return kFilters;
    case Construct::kTest:
      return kRefusedTests;
    case Construct::kTag:
      return kTags;
    case Construct::kFunction:
      return kRefusedFunctions;
  }
  return {};
}

}  // namespace

std::string no_construct(Construct construct, std::string_view name) {
  constexpr std::string_view kWords[] = {"filter", "test", "tag", "function"};
  const std::string_view word = kWords[static_cast<size_t>(construct)];
  return is_in(names_of(construct), name) ? fmt::format("the {} '{}' {}", word, name, kWhy)
                                          : fmt::format("unknown {} '{}'", word, name);
}

std::string no_method(Kind owner, std::string_view name) {
  const bool is_list = owner == Kind::kList, is_dict = owner == Kind::kDict;
  if (is_in(is_dict ? Names(kChangesDict) : is_list ? Names(kChangesList) : Names(), name))
    return fmt::format("'{}' of a {} is not allowed in a template, since it changes it", name,
                       type_name(owner));
  const Names lacking = owner == Kind::kString             ? Names(kText)
                        : is_dict                          ? Names(kDict)
                        : is_list || owner == Kind::kTuple ? Names(kSequence)
                                                           : Names();
  return is_in(lacking, name) ? fmt::format("'{}' of a {} {}", name, type_name(owner), kWhy) : std::string();
}

}  // namespace plimsoll::templates
