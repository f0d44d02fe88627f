#include "base/text_layout.h"

#include <algorithm>

namespace plimsoll {
namespace {

constexpr int kLeastField = 20;  // narrower than this, a hanging field is hard to read
constexpr size_t kFurtherIndent = 4;

/// The first byte of a character of this many columns; continuation bytes take none.
int columns_at(unsigned char byte) {
  if ((byte & 0xC0) == 0x80) return 0;
  return byte >= 0xE1 && byte != 0xE2 ? 2 : 1;  // U+1100 begins the wide ones; 0xE2 leads U+2000 to U+2FFF
}

/// As many characters as fit.
std::string cut(std::string text, int columns) {
  size_t end = 0;
  for (int taken = 0; end < text.size(); ++end) {
    taken += columns_at(static_cast<unsigned char>(text[end]));
    if (taken > columns) break;
  }
  text.resize(end);
  return text;
}

/// Appends words to lines of at most `columns`, each but the first indented by `indent`.
class Filler {
 public:
  Filler(std::string& out, int columns) : out_(out), columns_(columns) {}

  /// What stands between the words of a line; the first of it may be the line's own indent.
  void add(std::string_view blanks, std::string_view word, int indent) {
    const int width = columns_of(word), gap = static_cast<int>(blanks.size());
    if (has_word_ && at_ + gap + width > columns_) {
      if (indent + width > columns_) indent = std::min(indent, static_cast<int>(kFurtherIndent));
      out_ += '\n' + std::string(static_cast<size_t>(indent), ' ');
      at_ = indent;
    } else {
      out_ += blanks;
      at_ += gap;
    }
    out_ += word;
    at_ += width;
    has_word_ = true;
  }

 private:
  std::string& out_;
  int columns_, at_ = 0;
  bool has_word_ = false;
};

/// Whether what begins in column `at` can be read: some columns are left, and its first word fits.
bool has_room(std::string_view line, size_t at, int columns) {
  const int left = columns - columns_of(line.substr(0, at));
  const std::string_view rest = line.substr(at);
  return left >= std::max(kLeastField, columns / 3) && left >= columns_of(rest.substr(0, rest.find(' ')));
}

/// A line that is wider than `columns`, in several.
std::string broken(std::string_view line, int columns) {
  size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (indent > kFurtherIndent && !has_room(line, indent, columns)) {
    line.remove_prefix(indent - kFurtherIndent);
    indent = kFurtherIndent;
  }
  size_t last_field = line.find_last_not_of(' ');
  last_field = last_field == std::string_view::npos ? last_field : line.rfind("  ", last_field);
  last_field = last_field == std::string_view::npos || last_field < indent ? 0 : last_field + 2;
  const int hang = columns_of(line.substr(0, last_field));
  const bool hangs = hang > 0 && has_room(line, last_field, columns);
  std::string out;
  Filler filler(out, columns);
  for (size_t at = 0; at < line.size();) {
    const size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const size_t end = std::min(line.find(' ', word), line.size());
    if (word == line.size()) break;
    const size_t gap = at == 0 || (hangs && word <= last_field) ? word - at : std::min<size_t>(word - at, 2);
    filler.add(line.substr(at, gap), line.substr(word, end - word),
               hangs && word > last_field ? hang : static_cast<int>(indent) + 2);
    at = end;
  }
  return out;
}

}  // namespace

int columns_of(std::string_view text) {
  int columns = 0;
  for (const char c : text) columns += columns_at(static_cast<unsigned char>(c));
  return columns;
}

std::string wrapped(std::string_view text, int columns) {
  if (columns <= 0) return std::string(text);
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    out += columns_of(line) <= columns ? std::string(line) : broken(line, columns);
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

std::string harmless(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool of_two = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    const bool control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F || of_two;
    if (!control) {
      out += text[i];
      continue;
    }
    const unsigned code = of_two ? static_cast<unsigned char>(text[++i]) : byte;
    out += {'\\', 'x', kDigits[code / 16], kDigits[code % 16]};
  }
  return out;
}

std::string fitted(const std::vector<StatusPart>& parts, int columns) {
  std::vector<const StatusPart*> left;
  for (const StatusPart& part : parts)
    if (!part.text.empty()) left.push_back(&part);
  const auto joined = [&] {
    std::string line;
    for (const StatusPart* part : left) line += (line.empty() ? "" : "  ") + part->text;
    return line;
  };
  if (columns <= 0) return joined();
  while (left.size() > 1 && columns_of(joined()) > columns)
    left.erase(std::max_element(left.begin(), left.end(),
                                [](const auto* a, const auto* b) { return a->rank < b->rank; }));
  return cut(joined(), columns);
}

}  // namespace plimsoll
