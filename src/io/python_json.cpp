#include "io/python_json.h"

namespace plimsoll::io {

std::string to_python_json(const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::kNumber: {
      std::string text = to_json(tree);
      const bool looks_whole = text.find_first_not_of("-0123456789") == std::string::npos;
      return looks_whole ? text + ".0" : text;
    }
    case Tree::Kind::kList: {
      std::string text = "[";
      for (const Tree& item : tree.items) text += (text.size() > 1 ? ", " : "") + to_python_json(item);
      return text + "]";
    }
    case Tree::Kind::kMap: {
      std::string text = "{";
      for (const auto& [key, value] : tree.members)
        text += (text.size() > 1 ? ", " : "") + to_json(Tree::of(key)) + ": " + to_python_json(value);
      return text + "}";
    }
    case Tree::Kind::kNull:
    case Tree::Kind::kBool:
    case Tree::Kind::kInteger:
    case Tree::Kind::kString:
      break;
  }
  return to_json(tree);
}

}  // namespace plimsoll::io
