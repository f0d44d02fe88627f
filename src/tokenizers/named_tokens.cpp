// The order decides the ids: first what added_tokens_decoder lists, by its numbers (without it
// added_tokens.json), then the special tokens by name, then the extra ones.
#include "tokenizers/named_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "io/file.h"
#include "tokenizers/config_files.h"

namespace plimsoll::tokenizers {
namespace {

constexpr const char* kConfigName = "tokenizer_config.json";
constexpr const char* kMapName = "special_tokens_map.json";
constexpr const char* kAddedName = "added_tokens.json";

bool same_rules(const AddedToken& a, const AddedToken& b) {
  return a.content == b.content && a.single_word == b.single_word && a.strips_left == b.strips_left &&
         a.strips_right == b.strips_right && a.normalized == b.normalized && a.special == b.special;
}

AddedToken special_token(std::string content) { return {.content = std::move(content), .special = true}; }

/// An object as AddedToken takes it, with its defaults. Nothing where there is no content.
Result<AddedToken> token_of(const Field& field, std::optional<bool> special = {}) {
  PLIMSOLL_TRY(field.check_map());
  AddedToken token;
  PLIMSOLL_ASSIGN(token.content, field.member("content").string());
  PLIMSOLL_ASSIGN(token.special, field.member("special").boolean_or(false));
  if (special) token.special = *special;
  PLIMSOLL_ASSIGN(token.single_word, field.member("single_word").boolean_or(false));
  PLIMSOLL_ASSIGN(token.strips_left, field.member("lstrip").boolean_or(false));
  PLIMSOLL_ASSIGN(token.strips_right, field.member("rstrip").boolean_or(false));
  PLIMSOLL_ASSIGN(token.normalized, field.member("normalized").boolean_or(!token.special));
  return token;
}

bool is_fixed_name(std::string_view name) {
  return std::any_of(std::begin(kSpecialTokenFields), std::end(kSpecialTokenFields),
                     [&](const char* fixed) { return name == fixed; });
}

class Naming {
 public:
  Naming(const ConfigFiles& files, const io::Tree* listed) : files_(files), listed_(listed) {}

  Result<std::vector<NamedToken>> operator()() {
    PLIMSOLL_TRY(take_listed());
    const io::Tree* decoder = files_.config.find("added_tokens_decoder");
    const bool has_decoder = decoder != nullptr && !decoder->is_null();
    PLIMSOLL_TRY(take_special(!has_decoder));
    for (const auto& [name, named] : special_) names_.insert(named.token.content);
    PLIMSOLL_TRY(has_decoder ? take_decoder(file(kConfigName, files_.config).member("added_tokens_decoder"))
                             : take_added_tokens());
    order_.insert(order_.end(), own_names_.begin(), own_names_.end());
    for (const std::string& name : order_)
      if (const auto named = special_.find(name); named != special_.end()) add_named(named->second);
    for (const NamedToken& named : extra_) add_named(named);
    return std::move(result_);
  }

 private:
  [[nodiscard]] Field file(const char* name, const io::Tree& tree) const {
    return {&tree, "", files_.folder + "/" + name};
  }
  /// As field.member(key), without looking for it: there may be many.
  static Field member(const Field& field, const std::string& key, const io::Tree& value) {
    return {&value, field.path.empty() ? key : field.path + "." + key, field.source};
  }
  static bool is_from_map(const NamedToken& named) {
    return named.source.find(kMapName) != std::string::npos;
  }

  Status take_listed() {
    if (listed_ == nullptr) return Ok{};
    for (const io::Tree& item : listed_->items) {
      auto token = token_of(Field(&item, "added_tokens", files_.folder));
      if (!token) continue;  // the list's reader says what is wrong with it
      known_.insert(token->content);
      rules_.emplace(token->content, std::move(*token));
      const io::Tree* id = item.find("id");
      if (id != nullptr && id->kind == io::Tree::Kind::kInteger) listed_ids_.insert(id->integer);
    }
    return Ok{};
  }

  /// bos_token and the like, tokens that a model names for itself ("image_token"), the extra ones: those of
  /// additional_special_tokens, an older name, where extra_special_tokens is empty or names each of its own.
  Status take_special(bool with_map) {
    const Field config = file(kConfigName, files_.config);
    for (const char* name : kSpecialTokenFields) order_.emplace_back(name);
    for (const auto& [key, value] : files_.config.members)
      if (key.ends_with("_token")) PLIMSOLL_TRY(take_name(key, member(config, key, value), {}));
    Field extra = config.member("extra_special_tokens"), older = config.member("additional_special_tokens");
    const bool is_empty =
        extra.absent() ||
        (extra.tree->is_scalar() ? false : extra.tree->items.empty() && extra.tree->members.empty());
    if (older.tree != nullptr && is_empty) extra = std::exchange(older, {});
    std::optional<std::vector<NamedToken>> extras, olders;
    PLIMSOLL_TRY(take_list(extra, {}, extras));
    PLIMSOLL_TRY(take_list(older, {}, olders));
    if (with_map) PLIMSOLL_TRY(take_map(extras, olders));
    for (const char* name : kSpecialTokenFields)
      if (const auto named = special_.find(name); named != special_.end()) take_plain(named->second);
    if (extras)
      for (const NamedToken& named : *extras) take_plain(named);
    if (files_.pieces) PLIMSOLL_TRY(take_list(Field(&*files_.pieces, "pieces", files_.folder), {}, olders));
    if (files_.class_tokens) PLIMSOLL_TRY(take_class_tokens(olders));
    if (!extras) extras = std::move(olders);
    if (extras) extra_ = std::move(*extras);
    return Ok{};
  }

  Status take_class_tokens(std::optional<std::vector<NamedToken>>& to) {
    const std::string& mark = files_.class_tokens_mark;
    const bool extends = to && !mark.empty() && std::none_of(to->begin(), to->end(), [&](const auto& named) {
                           return named.token.content.find(mark) != std::string::npos;
                         });
    if (to && !extends) return Ok{};
    std::optional<std::vector<NamedToken>> more;
    PLIMSOLL_TRY(take_list(Field(&*files_.class_tokens, "class_tokens", files_.folder), {}, more));
    if (!to) to.emplace();
    to->insert(to->end(), more->begin(), more->end());
    return Ok{};
  }

  /// Objects of tokenizer_config.json are not told by their content when added_tokens.json is read.
  void take_plain(const NamedToken& named) {
    if (named.is_text || is_from_map(named)) plain_special_.insert(named.token.content);
  }

  Status take_map(std::optional<std::vector<NamedToken>>& extras,
                  std::optional<std::vector<NamedToken>>& olders) {
    const Field map = file(kMapName, files_.special_tokens_map);
    for (const auto& [key, value] : files_.special_tokens_map.members) {
      if (key == "extra_special_tokens") {
        std::optional<std::vector<NamedToken>> more;
        PLIMSOLL_TRY(take_list(member(map, key, value), true, more));
        if (!more) continue;
        if (!extras) extras.emplace();
        extras->insert(extras->end(), more->begin(), more->end());
      } else if (key == "additional_special_tokens") {
        PLIMSOLL_TRY(take_list(member(map, key, value), true, olders));
      } else if (key.ends_with("_token")) {
        PLIMSOLL_TRY(take_name(key, member(map, key, value), true));
      }
    }
    return Ok{};
  }

  /// A token by its name; later ones replace it. Other values than texts and tokens belong to no token.
  Status take_name(const std::string& name, const Field& field, std::optional<bool> special) {
    if (field.absent()) return Ok{};
    NamedToken named{.source = fmt::format("{}: {}", field.source, field.path)};
    if (field.tree->kind == io::Tree::Kind::kString) {
      named.token = special_token(field.tree->text);
      named.is_text = true;
    } else if (token_text(field.tree) != nullptr) {
      PLIMSOLL_ASSIGN(named.token, token_of(field, special));
      named.token.special = true;
    } else {
      return is_fixed_name(name) ? Status(field.expected("a token")) : Status(Ok{});
    }
    const bool from_map = special.has_value();
    if (!is_fixed_name(name)) {
      // A name of the model's own that tokenizer_config.json gives a text keeps it.
      const auto before = special_.find(name);
      if (before == special_.end())
        (!from_map && named.is_text ? own_names_ : order_).push_back(name);
      else if (from_map && before->second.is_text && !is_from_map(before->second))
        return Ok{};
    }
    special_[name] = std::move(named);
    return Ok{};
  }

  /// A list into `to`, which is there from then on; of a map each token has its name.
  Status take_list(const Field& field, std::optional<bool> special,
                   std::optional<std::vector<NamedToken>>& to) {
    if (field.tree == nullptr) return Ok{};
    if (field.tree->kind == io::Tree::Kind::kMap) {
      for (const auto& [name, value] : field.tree->members)
        PLIMSOLL_TRY(take_name(name, member(field, name, value), special));
      return Ok{};
    }
    to.emplace();
    if (field.absent()) return Ok{};
    PLIMSOLL_TRY(field.check_list());
    for (size_t i = 0; i < field.num_items(); ++i) {
      const Field item = field.item(i);
      NamedToken named{.source = fmt::format("{}: {}", item.source, item.path)};
      if (item.tree->kind == io::Tree::Kind::kString) {
        named.token = special_token(item.tree->text);
        named.is_text = true;
      } else {
        PLIMSOLL_ASSIGN(named.token, token_of(item, special));
      }
      to->push_back(std::move(named));
    }
    return Ok{};
  }

  /// By their numbers, which give the order and not the ids.
  Status take_decoder(const Field& field) {
    PLIMSOLL_TRY(field.check_map());
    std::map<int64_t, NamedToken> by_id;
    for (const auto& [key, value] : field.tree->members) {
      const Field at = member(field, key, value);
      int64_t id = -1;
      const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (code != std::errc() || end != key.data() + key.size() || id < 0 || id > INT32_MAX)
        return at.error("is no id");
      PLIMSOLL_ASSIGN(AddedToken token, token_of(at));
      by_id[id] = {std::move(token), id, fmt::format("{}: {}", at.source, at.path)};
    }
    for (auto& [id, named] : by_id) add_listed(std::move(named));
    return Ok{};
  }

  /// {"<tool>": 400, …}; where tokenizer.json has a token with the number, that one counts, as all of its do.
  Status take_added_tokens() {
    for (const auto& [content, token] : rules_)
      if (names_.contains(content)) add_listed({token, {}, {}});
    const Field field = file(kAddedName, files_.added_tokens);
    std::map<int64_t, NamedToken> by_id;
    for (const auto& [content, value] : files_.added_tokens.members) {
      const Field at = member(field, content, value);
      PLIMSOLL_ASSIGN(const int64_t id, at.integer(0, INT32_MAX));
      if (listed_ids_.contains(id)) continue;
      const bool is_special = plain_special_.contains(content);
      by_id[id] = {{.content = content, .normalized = !is_special, .special = is_special}, id, at.source};
    }
    for (auto& [id, named] : by_id) add_listed(std::move(named));
    return Ok{};
  }

  void add_listed(NamedToken named) {
    known_.insert(named.token.content);
    // What a field names is special, whatever the list says.
    named.token.special = named.token.special || names_.contains(named.token.content);
    const auto like = rules_.find(named.token.content);
    if (like == rules_.end() || !same_rules(like->second, named.token)) result_.push_back(std::move(named));
  }

  /// One that is named twice with other rules is added twice: the later ones count.
  void add_named(const NamedToken& named) {
    const AddedToken& token = named.token;
    if (known_.contains(token.content)) return;
    const std::string rules =
        fmt::format("{:d}{:d}{:d}{:d}{:d}{:d} {}", named.is_text, token.single_word, token.strips_left,
                    token.strips_right, token.normalized, token.special, token.content);
    if (added_.insert(rules).second) result_.push_back(named);
  }

  const ConfigFiles& files_;
  const io::Tree* listed_;
  std::unordered_set<std::string> known_;          ///< contents of what a list gives
  std::unordered_set<std::string> names_;          ///< contents of special_
  std::unordered_set<std::string> plain_special_;  ///< what added_tokens.json's special tokens are told by
  std::unordered_set<std::string> added_;          ///< what add_named has added
  std::map<std::string, AddedToken> rules_;        ///< of tokenizer.json's list, by content
  std::unordered_set<int64_t> listed_ids_;         ///< the ids that it gives
  std::vector<std::string> order_, own_names_;     ///< of the names: those that come first, and last
  std::map<std::string, NamedToken, std::less<>> special_;
  std::vector<NamedToken> extra_, result_;
};

}  // namespace

Result<ConfigFiles> ConfigFiles::read(const std::string& folder) {
  ConfigFiles files{.folder = folder};
  for (auto [name, to] : {std::pair{kConfigName, &files.config},
                          {kMapName, &files.special_tokens_map},
                          {kAddedName, &files.added_tokens}}) {
    PLIMSOLL_ASSIGN(*to, read_config_object_if_there(folder + "/" + name));
  }
  Result<io::Tree> model = read_config_object_if_there(folder + "/config.json");
  if (!model && model.error().code == ErrorCode::kIo) return std::move(model).error();
  if (model) files.model = std::move(*model);
  return files;
}

bool ConfigFiles::flag(std::string_view name, bool if_absent) const {
  const io::Tree* value = config.find(name);
  return value != nullptr && value->kind == io::Tree::Kind::kBool ? value->boolean : if_absent;
}

const std::string* special_text(const ConfigFiles& files, const char* name) {
  const io::Tree* decoder = files.config.find("added_tokens_decoder");
  if (decoder == nullptr || decoder->is_null())
    if (const std::string* token = token_text(files.special_tokens_map.find(name))) return token;
  return token_text(files.config.find(name));
}

Result<std::vector<NamedToken>> named_tokens(const ConfigFiles& files, const io::Tree* listed) {
  return Naming(files, listed)();
}

std::optional<int64_t> id_of_token(std::string_view token, const std::vector<NamedToken>& named,
                                   const Document& document) {
  std::unordered_map<std::string_view, int64_t> ids;
  for (const VocabEntry& entry : document.vocab) ids[entry.token] = entry.id;
  auto next = static_cast<int64_t>(document.vocab.size());
  for (const NamedToken& one : named)
    if (ids.emplace(one.token.content, next).second) ++next;
  const auto found = ids.find(token);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace plimsoll::tokenizers
