#include "cli/data/masked_text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cli/table.h"

namespace plimsoll::cli {
namespace {

constexpr std::string_view kGutter = "  │ ";
constexpr int kGutterColumns = 4;
constexpr std::string_view kDimOn = "\x1b[2m", kDimOff = "\x1b[0m";

/// The next character of UTF-8 text; a byte where it is none.
std::string_view first_character(std::string_view text) {
  utf8proc_int32_t code = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &code);
  return text.substr(0, bytes > 0 ? static_cast<size_t>(bytes) : 1);
}

/// Columns of a character on a terminal: 2 for those of East Asia and emoji, 0 for combining marks.
int columns_of(std::string_view character) {
  utf8proc_int32_t code = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                   static_cast<utf8proc_ssize_t>(character.size()), &code);
  return utf8proc_charwidth(code);
}

/// A character as it may go to a terminal: controls, also U+0080 to U+009F, and stray bytes spelled out.
std::string shown(std::string_view character) {
  const auto last = static_cast<unsigned char>(character.back());
  const bool stray = character.size() == 1 && last >= 0x80;
  const bool control = character.size() == 2 && character[0] == '\xc2' && last < 0xa0;
  if (stray || control) return fmt::format("\\x{:02x}", last);
  return character == "\t" ? "    " : printable(character);
}

}  // namespace

MaskStyle stdout_mask_style() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool plain = (no_color != nullptr && *no_color != '\0') || term == nullptr ||
                     std::string_view(term) == "dumb" || ::isatty(STDOUT_FILENO) == 0;
  return plain ? MaskStyle::kMarks : MaskStyle::kDim;
}

int stdout_width() {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::max<int>(size.ws_col, 24);
}

void MaskedText::set_masked(bool masked) {
  if (masked == masked_) return;
  masked_ = masked;
  if (style_ == MaskStyle::kDim) {
    line_ += masked ? kDimOn : kDimOff;
  } else {
    line_ += masked ? '[' : ']';
    ++column_;
  }
}

void MaskedText::end_line() {
  out_ += kGutter;
  out_ += line_;
  if (masked_ && style_ == MaskStyle::kDim) out_ += kDimOff;
  out_ += '\n';
  line_ = masked_ && style_ == MaskStyle::kDim ? kDimOn : "";
  column_ = 0;
  break_at_ = 0;
}

/// Ends the line behind its last blank; what stands behind that begins the next.
void MaskedText::wrap() {
  if (break_at_ == 0) return end_line();
  const std::string tail = line_.substr(break_at_);
  const int columns = column_ - break_column_;
  const bool masked = std::exchange(masked_, break_masked_);
  line_.resize(break_at_);
  end_line();
  masked_ = masked;
  line_ += tail;
  column_ = columns;
}

void MaskedText::put(std::string_view character) {
  if (character == "\n") return end_line();
  const std::string text = shown(character);
  const int columns = text == character ? columns_of(character) : static_cast<int>(text.size());
  if (column_ + columns > width_ - kGutterColumns - 1) wrap();
  line_ += text;
  column_ += columns;
  if (character != " " && character != "\t") return;
  break_at_ = line_.size();
  break_column_ = column_;
  break_masked_ = masked_;
}

void MaskedText::add(std::string_view text, bool in_loss) {
  if (text.empty()) return;
  set_masked(!in_loss);
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    put(character);
    text.remove_prefix(character.size());
  }
}

std::string MaskedText::finish() {
  set_masked(false);
  if (column_ > 0 || out_.empty()) end_line();
  column_ = 0;
  line_.clear();
  return std::exchange(out_, {});
}

}  // namespace plimsoll::cli
