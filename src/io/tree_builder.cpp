// One stack of open lists and maps; weight is counted as it grows, so an alias cannot multiply without bound.
#include "io/tree_builder.h"

#include <fmt/format.h>

namespace plimsoll::io {

int64_t tree_weight(const Tree& tree) {
  // A node takes about 150 bytes; 128 bytes of text are charged as another one.
  int64_t weight = 1 + static_cast<int64_t>(tree.text.size()) / 128;
  for (const Tree& item : tree.items) weight += tree_weight(item);
  for (const auto& [key, value] : tree.members)
    weight += static_cast<int64_t>(key.size()) / 128 + tree_weight(value);
  return weight;
}

bool TreeBuilder::fail(std::string why) {
  if (error_.empty()) error_ = std::move(why);
  return false;
}

bool TreeBuilder::wants_key() const {
  return !stack_.empty() && stack_.back().tree.kind == Tree::Kind::kMap && !stack_.back().has_key;
}

bool TreeBuilder::open(Tree::Kind kind, int line) {
  if (wants_key()) return fail("a list or a map stands where a key should, or a bracket is not closed");
  if (static_cast<int>(stack_.size()) >= limits_.max_depth)
    return fail(fmt::format("nested deeper than {} levels", limits_.max_depth));
  if (++num_nodes_ > limits_.max_nodes) return fail("too many values");
  stack_.push_back({.tree = {.kind = kind, .line = line}});
  return true;
}

bool TreeBuilder::key(std::string name) {
  Frame& frame = stack_.back();
  if (!frame.keys.insert(name).second)
    return fail(fmt::format("the key '{}' stands twice", name.substr(0, 60)));
  frame.key = std::move(name);
  frame.has_key = true;
  return true;
}

bool TreeBuilder::add(Tree value) {
  num_nodes_ += tree_weight(value);
  if (num_nodes_ > limits_.max_nodes) return fail("too many values");
  return attach(std::move(value));
}

bool TreeBuilder::attach(Tree value) {
  if (stack_.empty()) {
    if (has_root_) return fail("more than one document");
    root_ = std::move(value);
    has_root_ = true;
    return true;
  }
  Frame& frame = stack_.back();
  if (frame.tree.kind == Tree::Kind::kList) {
    frame.tree.items.push_back(std::move(value));
  } else {
    frame.tree.members.emplace_back(std::move(frame.key), std::move(value));
    frame.has_key = false;
  }
  return true;
}

bool TreeBuilder::close(Tree* closed) {
  Tree tree = std::move(stack_.back().tree);
  stack_.pop_back();
  if (closed) {
    num_nodes_ += tree_weight(tree);  // nested anchors would copy the same values once a level
    if (num_nodes_ > limits_.max_nodes) return fail("too many values");
    *closed = tree;
  }
  return attach(std::move(tree));
}

}  // namespace plimsoll::io
