// A document as a tree of plain values, the same for JSON and YAML, so that what reads settings or a
// config.json needs neither library's header. Parsers bound size, depth and number of nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll::io {

/// One value of a document. Which fields hold something follows from `kind`.
struct Tree {
  enum class Kind { kNull, kBool, kInteger, kNumber, kString, kList, kMap };

  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;             ///< kNumber, and the same value for kInteger
  std::string text = {};         ///< kString: the value; other scalars: their spelling in the document
  std::vector<Tree> items = {};  ///< kList
  std::vector<std::pair<std::string, Tree>> members = {};  ///< kMap, in the document's order, keys unique
  int line = 0;                                            ///< from 1; 0 where the format does not say

  static Tree of(bool value);
  static Tree of(int64_t value);
  static Tree of(double value);
  static Tree of(std::string value);
  static Tree list(std::vector<Tree> values = {});
  static Tree map(std::vector<std::pair<std::string, Tree>> values = {});

  [[nodiscard]] bool is_null() const { return kind == Kind::kNull; }
  [[nodiscard]] bool is_scalar() const { return kind != Kind::kList && kind != Kind::kMap; }
  /// The member called `key`, or null where there is none (or this is no map).
  [[nodiscard]] const Tree* find(std::string_view key) const;
  /// Sets or replaces a member of a map, or of a null that becomes one.
  void set(std::string_view key, Tree value);
  /// Puts `over` on top: maps merge member by member, everything else is replaced.
  void merge(const Tree& over);
  /// "null", "true", "an integer", …: for messages, a few words with the value where it is short.
  [[nodiscard]] std::string describe() const;
};

/// Limits that every parser keeps, so that hostile input costs neither stack nor memory.
struct TreeLimits {
  int64_t max_bytes = 1 << 20;
  int max_depth = 64;
  int64_t max_nodes = 200'000;
};

/// One line of JSON. Numbers print so that they read back to the same bits.
std::string to_json(const Tree& tree);
/// One line of YAML in flow style ("{r: 16, target_modules: [q_proj, v_proj]}"), strings quoted where needed.
std::string to_yaml_flow(const Tree& tree);
/// The shortest text that reads back to the same double, always a number to YAML ("0.0003", "1e-08", ".nan").
std::string number_text(double value);

}  // namespace plimsoll::io
