#include "importing/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "importing/dialects.h"
#include "io/json.h"
#include "io/json_cursor.h"
#include "io/suggest.h"
#include "io/yaml.h"

namespace plimsoll::importing {
namespace {

constexpr std::array<std::string_view, 5> kDialects = {"transformers", "trl", "torchtune", "axolotl",
                                                       "deepspeed"};
constexpr size_t kMostKeys = 5000;

Error wrong_source(std::string what, const std::string& where, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), where, std::move(hint)};
}

Result<io::Tree> parse(std::string_view text, const std::string& file) {
  if (const int64_t at = io::utf8_error_at(text); at >= 0)
    return wrong_source(fmt::format("byte {} is not UTF-8", at), file, "save it as UTF-8 text");
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  auto tree = is_json ? io::parse_json(text) : io::parse_yaml(text);
  // YAML's flow style begins like JSON; what is neither is told of as what its name says.
  if (!tree && is_json && !file.ends_with(".json"))
    if (auto yaml = io::parse_yaml(text)) tree = std::move(yaml);
  if (tree) return tree;
  Error error = std::move(tree).error().at(file);
  error.code = ErrorCode::kInvalidArgument;
  return error;
}

bool is_leaf(const io::Tree& value) {
  if (value.kind == io::Tree::Kind::kMap) return value.members.empty();
  return value.kind != io::Tree::Kind::kList ||
         std::all_of(value.items.begin(), value.items.end(),
                     [](const io::Tree& item) { return item.is_scalar(); });
}

class Flattener {
 public:
  Flattener(Source& to) : to_(to) {}

  void add(const std::string& name, const std::string& pattern, const io::Tree& value) {
    if (to_.keys.size() > kMostKeys) return;
    if (is_leaf(value)) {
      to_.keys.push_back({to_.file, name, canonical(to_.dialect, pattern), value, to_.dialect});
    } else if (value.kind == io::Tree::Kind::kMap) {
      for (const auto& [key, member] : value.members)
        add(name.empty() ? key : name + "." + key, pattern.empty() ? key : pattern + "." + key, member);
    } else {
      for (size_t i = 0; i < value.items.size(); ++i)
        add(fmt::format("{}[{}]", name, i), pattern + "[]", value.items[i]);
    }
  }

 private:
  Source& to_;
};

/// What HfArgumentParser takes as text where a map is meant: "{'num_cycles': 2}".
void read_maps_in_text(io::Tree& tree) {
  for (auto& [key, value] : tree.members) {
    const bool may_be = key.ends_with("_kwargs") || key.ends_with("_config") || key == "model_init_kwargs";
    if (!may_be || value.kind != io::Tree::Kind::kString || !value.text.starts_with('{')) continue;
    auto map = io::parse_yaml(value.text);
    if (map && map->kind == io::Tree::Kind::kMap) {
      map->line = value.line;
      value = std::move(*map);
    }
  }
}

/// "IntervalStrategy.STEPS": how older dumps print an enum's member, whose value is in lower case.
void read_enums(io::Tree& tree) {
  for (auto& [key, value] : tree.members) {
    if (value.kind != io::Tree::Kind::kString) continue;
    for (const std::string_view name :
         {"IntervalStrategy.", "SaveStrategy.", "SchedulerType.", "OptimizerNames.", "HubStrategy."}) {
      if (!value.text.starts_with(name)) continue;
      value.text.erase(0, name.size());
      for (char& c : value.text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
  }
}

/// ${output_dir}: OmegaConf's reference to a key of the same file, in torchtune's.
std::string interpolated(std::string text, const io::Tree& root) {
  for (int rounds = 0; rounds < 20; ++rounds) {
    const size_t begin = text.find("${");
    const size_t end = begin == std::string::npos ? begin : text.find('}', begin);
    if (end == std::string::npos) return text;
    const io::Tree* at = &root;
    std::string_view path = std::string_view(text).substr(begin + 2, end - begin - 2);
    while (at != nullptr && !path.empty()) {
      const size_t dot = std::min(path.find('.'), path.size());
      at = at->find(path.substr(0, dot));
      path.remove_prefix(std::min(dot + 1, path.size()));
    }
    if (at == nullptr || !at->is_scalar() || text.size() + at->text.size() > 4000) return text;
    text.replace(begin, end - begin + 1, at->text);
  }
  return text;
}

void interpolate(io::Tree& tree, const io::Tree& root) {
  if (tree.kind == io::Tree::Kind::kString && tree.text.find("${") != std::string::npos)
    tree.text = interpolated(tree.text, root);
  for (io::Tree& item : tree.items) interpolate(item, root);
  for (auto& [key, value] : tree.members) interpolate(value, root);
}

Result<Dialect> dialect_of(const io::Tree& tree, const std::string& file, const std::string& from) {
  const auto names = dialect_names();
  if (!from.empty()) {
    const auto found = std::find(names.begin(), names.end(), from);
    if (found != names.end()) return static_cast<Dialect>(found - names.begin());
    return wrong_source(fmt::format("'{}' is no configuration that can be imported", from.substr(0, 60)),
                        "--from", io::nearest_hint(from, names));
  }
  if (const auto dialect = recognised(tree)) return *dialect;
  if (tree.find("model") != nullptr && tree.find("model")->kind == io::Tree::Kind::kMap)
    return wrong_source("this looks like a run file of Plimsoll, which needs no import", file,
                        "run: plimsoll plan " + file);
  return wrong_source("no key says whose configuration this is", file,
                      fmt::format("name it: --from {}", fmt::join(names, "|")));
}

}  // namespace

std::string_view name_of(Dialect dialect) { return kDialects[static_cast<size_t>(dialect)]; }

std::vector<std::string> dialect_names() { return {kDialects.begin(), kDialects.end()}; }

std::string SourceKey::place() const {
  return value.line > 0 ? fmt::format("{} line {}", file, value.line) : file;
}

Result<std::vector<Source>> read_source(std::string_view text, const std::string& file,
                                        const std::string& from) {
  PLIMSOLL_ASSIGN(io::Tree tree, parse(text, file));
  if (tree.kind != io::Tree::Kind::kMap)
    return wrong_source("a configuration is a map of settings, this is " + tree.describe(), file,
                        "give the YAML or JSON file of the arguments");
  PLIMSOLL_ASSIGN(const Dialect dialect, dialect_of(tree, file, from));
  read_maps_in_text(tree);
  read_enums(tree);
  if (dialect == Dialect::kTorchtune) {
    const io::Tree root = tree;
    interpolate(tree, root);
  }
  std::vector<Source> sources = {{file, dialect, {}}};
  const io::Tree* nested = dialect == Dialect::kDeepspeed ? nullptr : tree.find("deepspeed");
  if (nested != nullptr && nested->kind == io::Tree::Kind::kMap && !nested->members.empty()) {
    sources.push_back({file, Dialect::kDeepspeed, {}});
    for (const auto& [key, value] : nested->members)
      Flattener(sources.back()).add("deepspeed." + key, key, value);
  }
  for (const auto& [key, value] : tree.members)
    if (&value != nested || sources.size() == 1) Flattener(sources.front()).add(key, key, value);
  for (const Source& source : sources)
    if (source.keys.size() > kMostKeys)
      return wrong_source(fmt::format("more than {} keys", kMostKeys), file,
                          "check that this is the file you meant");
  return sources;
}

}  // namespace plimsoll::importing
