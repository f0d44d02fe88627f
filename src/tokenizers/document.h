// A tokenizer.json taken apart: its two large members, vocabulary and merges, as plain lists, the rest as a
// tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::tokenizers {

/// A place in the document, with the words for what is wrong there.
struct Field {
  const io::Tree* tree = nullptr;  ///< null where the field is absent
  std::string path = {};           ///< "pre_tokenizer.pretokenizers[1].behavior"
  std::string source = {};         ///< the file

  /// The member of a map, an item of a list.
  [[nodiscard]] Field member(std::string_view key) const;
  [[nodiscard]] Field item(size_t index) const;
  Field() = default;
  Field(const io::Tree* at, std::string where, std::string file)
      : tree(at), path(std::move(where)), source(std::move(file)) {}

  [[nodiscard]] bool absent() const { return !tree || tree->is_null(); }
  [[nodiscard]] size_t num_items() const { return tree ? tree->items.size() : 0; }

  /// "path is …, expected …"
  [[nodiscard]] Error expected(std::string_view what) const;
  /// kBadData at this place: "path what".
  [[nodiscard]] Error error(std::string_view what) const;
  /// Errors of all below: kBadData that names the field.
  [[nodiscard]] Result<std::string> string() const;
  [[nodiscard]] Result<bool> boolean() const;
  [[nodiscard]] Result<bool> boolean_or(bool if_absent) const;
  [[nodiscard]] Result<int64_t> integer(int64_t least, int64_t most) const;
  [[nodiscard]] Result<std::string> type() const;
  Status check_list() const;
  Status check_map() const;
};

struct VocabEntry {
  std::string token;
  int64_t id = 0;
  double score = 0;  ///< of a list's entry
};

struct Document {
  io::Tree root = {};                                            ///< without model.vocab and model.merges
  bool has_vocab = false;                                        ///< model.vocab was a map
  bool has_scores = false;                                       ///< model.vocab was a list
  bool has_merges = false;                                       ///< model.merges was a list
  std::vector<VocabEntry> vocab = {};                            ///< in the file's order
  std::vector<std::pair<std::string, std::string>> merges = {};  ///< by rank
};

/// Errors: kBadData for broken JSON, for a vocabulary that is neither a map to integers nor a list of pieces
/// with scores, for merges that are neither "a b" nor ["a", "b"]. `source` names the file in them.
Result<Document> read_document(std::string_view json, const std::string& source);

}  // namespace plimsoll::tokenizers
