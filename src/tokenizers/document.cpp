// nlohmann's SAX parser, which does not recurse. model.vocab and model.merges, a hundred thousand entries
// each, go straight to their lists; all other events build a tree within its limits.
#include "tokenizers/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "io/tree_builder.h"
#include "tokenizers/score.h"

namespace plimsoll::tokenizers {
namespace {

constexpr io::TreeLimits kLimits{.max_bytes = int64_t{1} << 28, .max_depth = 32, .max_nodes = 2'000'000};

class Events : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return scalar({}, "null"); }
  bool boolean(bool value) override { return scalar(io::Tree::of(value), "a boolean"); }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (within_ == Within::kPiece && num_parts_ == 1) return score(static_cast<double>(value));
    return integer(
        static_cast<int64_t>(std::min<number_unsigned_t>(value, std::numeric_limits<int64_t>::max())));
  }
  bool number_float(number_float_t value, const string_t& spelling) override {
    if (within_ == Within::kPiece && num_parts_ == 1) return score(read_score(spelling));
    return scalar(io::Tree::of(value), "a fraction");
  }
  bool string(string_t& value) override;
  bool binary(binary_t& /*value*/) override { return false; }  // JSON text has none
  bool start_object(size_t /*elements*/) override { return open(io::Tree::Kind::kMap); }
  bool key(string_t& name) override;
  bool end_object() override { return close(); }
  bool start_array(size_t /*elements*/) override { return open(io::Tree::Kind::kList); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*why*/) override {
    if (error.empty()) error = fmt::format("broken JSON at byte {}", position);
    return false;
  }

  Document document;
  io::TreeBuilder builder{kLimits};
  std::string error;

 private:
  enum class Within { kTree, kVocab, kPieces, kPiece, kMerges, kMerge, kSkipped };

  bool fail(std::string why) {
    error = std::move(why);
    return false;
  }
  bool in_model() const { return path_.size() == 2 && path_[0] == "model"; }
  bool scalar(io::Tree value, std::string_view kind);
  bool integer(int64_t value);
  bool score(std::optional<double> value);
  bool close_piece();
  bool open(io::Tree::Kind kind);
  bool close();
  bool merge_line(const std::string& line);

  Within within_ = Within::kTree;
  int skipped_depth_ = 0;
  std::vector<std::string> path_;  // the key last seen in each open map of the tree; "" in lists
  std::string token_;              // the key last seen in the vocabulary
  std::vector<std::string> pair_;  // what the open merge holds
  int num_parts_ = 0;              // that the open piece has
};

bool Events::scalar(io::Tree value, std::string_view kind) {
  switch (within_) {
    case Within::kTree:
      return builder.add(std::move(value));
    case Within::kSkipped:
      return true;
    case Within::kPieces:
    case Within::kPiece:
      return fail(fmt::format("model.vocab[{}] is or has {}, expected [piece, score]",
                              document.vocab.size() - (within_ == Within::kPiece), kind));
    case Within::kVocab:
      return fail(fmt::format("model.vocab['{}'] is {}, expected an id", token_.substr(0, 60), kind));
    default:
      return fail(
          fmt::format("model.merges[{}] holds {}, expected two tokens", document.merges.size(), kind));
  }
}

bool Events::integer(int64_t value) {
  if (within_ == Within::kPiece && num_parts_ == 1) return score(static_cast<double>(value));
  if (within_ != Within::kVocab) return scalar(io::Tree::of(value), "a number");
  document.vocab.push_back({std::move(token_), value});
  return true;
}

bool Events::score(std::optional<double> value) {
  if (!value)
    return fail(fmt::format("model.vocab[{}] has a score that is too large", document.vocab.size() - 1));
  document.vocab.back().score = *value;
  ++num_parts_;
  return true;
}

bool Events::close_piece() {
  within_ = Within::kPieces;
  if (num_parts_ == 2) return true;
  return fail(fmt::format("model.vocab[{}] breaks off, expected [piece, score]", document.vocab.size() - 1));
}

bool Events::merge_line(const std::string& line) {
  if (line.starts_with("#version")) return true;  // a line of merges.txt that was kept
  const size_t space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
    return fail(fmt::format("model.merges[{}] is '{}', expected two tokens with one space between",
                            document.merges.size(), line.substr(0, 60)));
  document.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  return true;
}

bool Events::string(string_t& value) {
  if (within_ == Within::kMerges) return merge_line(value);
  if (within_ == Within::kPiece && num_parts_ == 0) {
    document.vocab.back().token = std::move(value);
    num_parts_ = 1;
    return true;
  }
  if (within_ != Within::kMerge) return scalar(io::Tree::of(std::move(value)), "a string");
  pair_.push_back(std::move(value));
  return true;
}

bool Events::key(string_t& name) {
  if (within_ == Within::kSkipped) return true;
  if (within_ == Within::kVocab) {
    token_ = std::move(name);
    return true;
  }
  path_.back() = name;
  return builder.key(std::move(name));
}

bool Events::open(io::Tree::Kind kind) {
  if (within_ == Within::kSkipped) return ++skipped_depth_, true;
  if (within_ == Within::kMerges && kind == io::Tree::Kind::kList) {
    within_ = Within::kMerge;
    pair_.clear();
    return true;
  }
  if (within_ == Within::kPieces && kind == io::Tree::Kind::kList) {
    within_ = Within::kPiece;
    document.vocab.push_back({.token = {}, .id = static_cast<int64_t>(document.vocab.size())});
    num_parts_ = 0;
    return true;
  }
  if (within_ != Within::kTree) return scalar({}, kind == io::Tree::Kind::kMap ? "a map" : "a list");
  const bool vocab = in_model() && path_[1] == "vocab";
  const bool merges = in_model() && path_[1] == "merges";
  if (!vocab && !merges) {
    path_.emplace_back();
    return builder.open(kind, 0);
  }
  if (vocab && kind == io::Tree::Kind::kMap) {
    within_ = Within::kVocab;
    document.has_vocab = true;
  } else if (vocab && kind == io::Tree::Kind::kList) {
    within_ = Within::kPieces;
    document.has_scores = true;
  } else if (merges && kind == io::Tree::Kind::kList) {
    within_ = Within::kMerges;
    document.has_merges = true;
  } else {
    within_ = Within::kSkipped;  // another kind of model; its name is read, its vocabulary is not
    skipped_depth_ = 1;
  }
  return builder.add({});
}

bool Events::close() {
  switch (within_) {
    case Within::kTree:
      path_.pop_back();
      return builder.close();
    case Within::kSkipped:
      if (--skipped_depth_ == 0) within_ = Within::kTree;
      return true;
    case Within::kPiece:
      return close_piece();
    case Within::kMerge:
      if (pair_.size() != 2)
        return fail(
            fmt::format("model.merges[{}] has {} tokens, expected 2", document.merges.size(), pair_.size()));
      document.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
      within_ = Within::kMerges;
      return true;
    default:
      within_ = Within::kTree;
      return true;
  }
}

}  // namespace

Field Field::member(std::string_view key) const {
  return {tree ? tree->find(key) : nullptr, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key),
          source};
}

Field Field::item(size_t index) const {
  const bool there = tree && index < tree->items.size();
  return {there ? &tree->items[index] : nullptr, fmt::format("{}[{}]", path, index), source};
}

Error Field::error(std::string_view what) const {
  return {ErrorCode::kBadData, fmt::format("{} {}", path, what), source, {}};
}

Error Field::expected(std::string_view what) const {
  return error(tree ? fmt::format("is {}, expected {}", tree->describe(), what)
                    : fmt::format("is missing, expected {}", what));
}

Result<std::string> Field::string() const {
  if (!tree || tree->kind != io::Tree::Kind::kString) return expected("a string");
  return tree->text;
}

Result<bool> Field::boolean() const {
  if (!tree || tree->kind != io::Tree::Kind::kBool) return expected("true or false");
  return tree->boolean;
}

Result<bool> Field::boolean_or(bool if_absent) const {
  if (absent()) return if_absent;
  return boolean();
}

Result<int64_t> Field::integer(int64_t least, int64_t most) const {
  if (!tree || tree->kind != io::Tree::Kind::kInteger || tree->integer < least || tree->integer > most)
    return expected(fmt::format("an integer from {} to {}", least, most));
  return tree->integer;
}

Result<std::string> Field::type() const {
  PLIMSOLL_TRY(check_map());
  return member("type").string();
}

Status Field::check_list() const {
  if (!tree || tree->kind != io::Tree::Kind::kList) return expected("a list");
  return Ok{};
}

Status Field::check_map() const {
  if (!tree || tree->kind != io::Tree::Kind::kMap) return expected("a map");
  return Ok{};
}

Result<Document> read_document(std::string_view json, const std::string& source) {
  const auto broken = [&source](std::string what) {
    return Error{ErrorCode::kBadData, std::move(what), source, {}};
  };
  if (static_cast<int64_t>(json.size()) > kLimits.max_bytes)
    return broken(fmt::format("{} bytes, more than the {} allowed", json.size(), kLimits.max_bytes));
  Events events;
  const bool ok = nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  if (!events.error.empty()) return broken(events.error);
  if (!events.builder.error().empty()) return broken("JSON: " + events.builder.error());
  if (!ok || !events.builder.done()) return broken("JSON breaks off");
  events.document.root = events.builder.take();
  return std::move(events.document);
}

}  // namespace plimsoll::tokenizers
