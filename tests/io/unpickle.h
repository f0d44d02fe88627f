// Reads what PickleWriter writes, by Python's definition of the opcodes, with the memo left out.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "io/tree.h"

namespace plimsoll::io {

class Unpickler {
 public:
  explicit Unpickler(const std::string& bytes) : bytes_(bytes) {}

  Tree read() {
    PLIMSOLL_CHECK(take() == 0x80 && take() == 2, "protocol 2");
    for (unsigned char op = take(); op != '.'; op = take()) step(op);
    PLIMSOLL_CHECK(at_ == bytes_.size() && stack_.size() == 1 && marks_.empty(), "one value");
    return stack_[0];
  }
  /// The most items that stood behind a mark.
  [[nodiscard]] size_t largest_batch() const { return largest_batch_; }

 private:
  unsigned char take() { return static_cast<unsigned char>(bytes_.at(at_++)); }
  int64_t number(int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= static_cast<uint64_t>(take()) << (8 * i);
    return static_cast<int64_t>(value);
  }
  std::vector<Tree> popped() {
    const auto mark = stack_.begin() + static_cast<int64_t>(marks_.back());
    std::vector<Tree> items(mark, stack_.end());
    stack_.erase(mark, stack_.end());
    marks_.pop_back();
    largest_batch_ = std::max(largest_batch_, items.size());
    return items;
  }
  void step(unsigned char op) {
    switch (op) {
      case '}':
        stack_.push_back(Tree::map());
        break;
      case ']':
        stack_.push_back(Tree::list());
        break;
      case '(':
        marks_.push_back(stack_.size());
        break;
      case 'X': {
        const auto size = static_cast<size_t>(number(4));
        stack_.push_back(Tree::of(bytes_.substr(at_, size)));
        at_ += size;
        break;
      }
      case 'K':
        stack_.push_back(Tree::of(number(1)));
        break;
      case 'J':
        stack_.push_back(Tree::of(int64_t{static_cast<int32_t>(number(4))}));
        break;
      case 0x8a:
        PLIMSOLL_CHECK(take() == 8, "eight bytes");
        stack_.push_back(Tree::of(number(8)));
        break;
      case 0x88:
        stack_.push_back(Tree::of(true));
        break;
      case 0x89:
        stack_.push_back(Tree::of(false));
        break;
      case 0x86: {
        Tree second = stack_.back();
        stack_.pop_back();
        stack_.back() = Tree::list({stack_.back(), second});
        break;
      }
      case 'u': {
        const std::vector<Tree> items = popped();
        for (size_t i = 0; i + 1 < items.size(); i += 2)
          stack_.back().members.emplace_back(items[i].text, items[i + 1]);
        break;
      }
      case 'e':
        for (Tree& item : popped()) stack_.back().items.push_back(std::move(item));
        break;
      default:
        PLIMSOLL_CHECK(false, "an opcode that is not written: " + std::to_string(op));
    }
  }

  const std::string& bytes_;
  size_t at_ = 0;
  std::vector<Tree> stack_;
  std::vector<size_t> marks_;
  size_t largest_batch_ = 0;
};

}  // namespace plimsoll::io
