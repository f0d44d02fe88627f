// Builds a Tree from a parser's events while it keeps the limits. Used by the JSON and YAML readers alone.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "io/tree.h"

namespace plimsoll::io {

/// Events in, tree out. Each call returns false once something is wrong; `error` then says what.
class TreeBuilder {
 public:
  explicit TreeBuilder(TreeLimits limits) : limits_(limits) {}

  bool open(Tree::Kind kind, int line);
  bool key(std::string name);
  bool add(Tree value);
  /// Closes the innermost list or map; `closed` (where given) receives a copy of it.
  bool close(Tree* closed = nullptr);

  [[nodiscard]] bool done() const { return has_root_ && stack_.empty(); }
  /// Whether the next event in the innermost map is a key.
  [[nodiscard]] bool wants_key() const;
  [[nodiscard]] const std::string& error() const { return error_; }
  Tree take() { return std::move(root_); }

 private:
  struct Frame {
    Tree tree;
    std::string key = {};
    bool has_key = false;
    std::set<std::string> keys = {};
  };
  bool fail(std::string why);
  bool attach(Tree value);
  TreeLimits limits_;
  std::vector<Frame> stack_;
  Tree root_;
  bool has_root_ = false;
  int64_t num_nodes_ = 0;
  std::string error_;
};

/// What a tree counts against TreeLimits::max_nodes: its nodes, long strings as several.
int64_t tree_weight(const Tree& tree);

}  // namespace plimsoll::io
