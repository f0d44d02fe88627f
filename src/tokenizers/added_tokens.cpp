// A trie walked from every byte that starts a token; such bytes are rare in text, and tokens are short.
#include "tokenizers/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/host.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {
namespace {

constexpr size_t kMaxTokenBytes = 1024;  // bounds the walk from one byte

bool is_word(CodePoint c) { return (properties()[c.value] & kWordBit) != 0; }

/// Whether no letter, digit or the like touches text[begin, end).
bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const bool left = begin == 0 || !is_word(decode_before(text.data() + begin));
  const bool right = end == text.size() || !is_word(decode(text.data() + end));
  return left && right;
}

/// Where the spaces that end at `at` start, no earlier than `least`.
size_t spaces_before(std::string_view text, size_t at, size_t least) {
  while (at > least) {
    const CodePoint c = decode_before(text.data() + at);
    if (!is_space(c)) break;
    at -= static_cast<size_t>(c.length);
  }
  return at;
}

size_t spaces_after(std::string_view text, size_t at) {
  while (at < text.size() && is_space(decode(text.data() + at)))
    at += static_cast<size_t>(decode(text.data() + at).length);
  return at;
}

}  // namespace

uint32_t TokenFinder::child(uint32_t node, unsigned char byte) const {
  const auto& children = nodes_[node].children;
  const auto at =
      std::lower_bound(children.begin(), children.end(), std::pair<unsigned char, uint32_t>(byte, 0));
  return at != children.end() && at->first == byte ? at->second : 0;
}

bool TokenFinder::add(std::string_view text, uint32_t value) {
  uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    uint32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      auto& children = nodes_[node].children;
      children.emplace(
          std::lower_bound(children.begin(), children.end(), std::pair<unsigned char, uint32_t>(byte, 0)),
          byte, next);
      if (node == 0) first_[byte] = next;
      nodes_.emplace_back();
    }
    node = next;
  }
  if (node == 0 || nodes_[node].value >= 0) return false;
  nodes_[node].value = static_cast<int32_t>(value);
  max_bytes_ = std::max(max_bytes_, text.size());
  return true;
}

std::optional<TokenFinder::Match> TokenFinder::find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    uint32_t node = first_[static_cast<unsigned char>(text[begin])];
    if (node == 0) continue;
    std::optional<Match> longest;
    for (size_t at = begin + 1;; ++at) {
      if (nodes_[node].value >= 0) longest = Match{begin, at, static_cast<uint32_t>(nodes_[node].value)};
      if (at == text.size()) break;
      node = child(node, static_cast<unsigned char>(text[at]));
      if (node == 0) break;
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

bool TokenFinder::reaches(std::string_view text, size_t begin, size_t at) const {
  uint32_t node = first_[static_cast<unsigned char>(text[begin])];
  for (size_t end = begin + 1; node != 0; ++end) {
    if (nodes_[node].value >= 0 && end >= at) return true;
    if (end == text.size()) return true;
    node = child(node, static_cast<unsigned char>(text[end]));
  }
  return false;
}

Result<AddedTokens> AddedTokens::build(const Field& list, const std::vector<NamedToken>& named,
                                       bool splits_special, const Normalizer& normalizer,
                                       Vocabulary& vocabulary) {
  AddedTokens result;
  result.splits_special_ = splits_special;
  if (!list.absent()) {
    PLIMSOLL_TRY(list.check_list());
    int32_t next_id = static_cast<int32_t>(vocabulary.num_tokens());
    for (size_t i = 0; i < list.num_items(); ++i) PLIMSOLL_TRY(result.add(list.item(i), vocabulary, next_id));
  }
  PLIMSOLL_TRY(result.add_named(named, vocabulary));
  PLIMSOLL_TRY(result.index(list, normalizer));
  return result;
}

Status AddedTokens::index(const Field& list, const Normalizer& normalizer) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    AddedToken& token = tokens_[i];
    token.pattern = token.content;
    if (token.normalized) {
      std::string out;
      bool first = true;
      token.pattern = std::string(normalizer.apply(token.content, out, first));
    }
    strips_left_ |= token.strips_left;
    strips_right_ |= token.strips_right;
    TokenFinder& finder = token.normalized ? normalized_ : raw_;
    if (!finder.add(token.pattern, static_cast<uint32_t>(i)))
      return list.error(fmt::format("has '{}', which is empty or another one's once normalized",
                                    token.content.substr(0, 60)));
  }
  return Ok{};
}

Status AddedTokens::add(const Field& field, Vocabulary& vocabulary, int32_t& next_id) {
  PLIMSOLL_TRY(field.check_map());
  AddedToken token;
  PLIMSOLL_ASSIGN(token.content, field.member("content").string());
  PLIMSOLL_ASSIGN(const int64_t id, field.member("id").integer(0, INT32_MAX));
  PLIMSOLL_ASSIGN(token.single_word, field.member("single_word").boolean());
  PLIMSOLL_ASSIGN(token.strips_left, field.member("lstrip").boolean());
  PLIMSOLL_ASSIGN(token.strips_right, field.member("rstrip").boolean());
  PLIMSOLL_ASSIGN(token.normalized, field.member("normalized").boolean());
  PLIMSOLL_ASSIGN(token.special, field.member("special").boolean());
  if (token.content.empty()) return Ok{};  // the package passes over it
  const std::string content = token.content;
  PLIMSOLL_TRY(enter(std::move(token), field, vocabulary, next_id));
  if (tokens_.back().id != id)
    note(fmt::format("{}: {} says id {}, but '{}' is {}, as with the tokenizers package", field.source,
                     field.path, id, content.substr(0, 60), tokens_.back().id));
  return Ok{};
}

Status AddedTokens::enter(AddedToken token, const Field& place, Vocabulary& vocabulary, int32_t& next_id) {
  if (token.content.size() > kMaxTokenBytes)
    return place.member("content").error(
        fmt::format("has {} bytes, more than the {} allowed", token.content.size(), kMaxTokenBytes));
  const auto known = vocabulary.find(token.content);
  token.id = known ? *known : next_id++;
  if (!vocabulary.add(token.content, token.id))
    return place.member("id").error(fmt::format("clashes: '{}' gets the id {}, which is that of '{}'",
                                                token.content.substr(0, 60), token.id,
                                                vocabulary.token(token.id).substr(0, 60)));
  if (!ids_.insert(token.id).second)
    return place.error(fmt::format("adds '{}' a second time", token.content.substr(0, 60)));
  tokens_.push_back(std::move(token));
  return Ok{};
}

// The package counts on from the highest id of the tokens added before, where that is beyond the model's.
Status AddedTokens::add_named(const std::vector<NamedToken>& named, Vocabulary& vocabulary) {
  auto next_id = static_cast<int32_t>(vocabulary.num_tokens());
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    next_id = std::max(next_id, tokens_[i].id + 1);
    places.emplace(tokens_[i].content, i);
  }
  for (const NamedToken& one : named) {
    if (one.token.content.empty()) continue;
    const auto [place, is_new] = places.emplace(one.token.content, tokens_.size());
    if (is_new) {
      PLIMSOLL_TRY(enter(one.token, Field(nullptr, "the token", one.source), vocabulary, next_id));
    } else {
      AddedToken& before = tokens_[place->second];
      AddedToken changed = one.token;
      changed.id = before.id;
      changed.special |= before.special;  // what was special once stays so to the package
      before = std::move(changed);
    }
    const int32_t id = *vocabulary.find(one.token.content);
    if (one.said_id && *one.said_id != id)
      note(fmt::format("{} says id {}, but '{}' is {}, as with transformers", one.source, *one.said_id,
                       one.token.content.substr(0, 60), id));
  }
  return Ok{};
}

bool AddedTokens::touches(std::string_view text, size_t at, bool normalized) const {
  const TokenFinder& finder = normalized ? normalized_ : raw_;
  if (finder.empty()) return false;
  for (size_t begin = at - std::min(at, finder.max_bytes()); begin <= at; ++begin)
    if (finder.reaches(text, begin, at)) return true;
  if (strips_right_ && is_space(decode_before(text.data() + at))) return true;
  if (!strips_left_) return false;
  const size_t behind = spaces_after(text, at);
  return behind == text.size() || finder.reaches(text, behind, behind);
}

void AddedTokens::cut(std::string_view text, bool normalized, std::vector<Section>& sections) const {
  const TokenFinder& finder = normalized ? normalized_ : raw_;
  size_t done = 0;
  if (!finder.empty()) {
    for (auto match = finder.find(text, 0); match; match = finder.find(text, match->end)) {
      const AddedToken& token = tokens_[match->value];
      if (token.single_word && !stands_alone(text, match->begin, match->end)) continue;
      if (splits_special_ && token.special) continue;
      const size_t begin =
          token.strips_left ? std::max(spaces_before(text, match->begin, done), done) : match->begin;
      // A token of spaces that lies within what the one before has stripped is empty once it strips itself.
      if (token.strips_left && begin >= match->end) continue;
      if (done < begin) sections.push_back({.text = text.substr(done, begin - done)});
      // A token of spaces may lie within what the one before has stripped; without a strip of its own the
      // text goes on right behind it, as in the package.
      if (!token.strips_right)
        done = match->end;
      else if (match->end > done)
        done = spaces_after(text, match->end);
      sections.push_back({.text = text.substr(begin, std::max(done, match->end) - begin), .id = token.id});
    }
  }
  if (done < text.size()) sections.push_back({.text = text.substr(done)});
}

}  // namespace plimsoll::tokenizers
