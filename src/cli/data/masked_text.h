// Text of which parts are in the loss and parts are not, on a terminal or in a file.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::cli {

/// How masked parts are told from the others.
enum class MaskStyle {
  kDim,    ///< a terminal's faint letters
  kMarks,  ///< [..] around them
};
/// kDim where stdout is a terminal that shows it (and NO_COLOR is not set).
MaskStyle stdout_mask_style();
/// Columns of the terminal that stdout is, 24 at least; 100 where it is none.
int stdout_width();

/// Collects parts of a text and breaks them into lines, at blanks where it can, behind a gutter. Control
/// characters are spelled out.
class MaskedText {
 public:
  MaskedText(MaskStyle style, int width) : style_(style), width_(width) {}
  void add(std::string_view text, bool in_loss);
  /// The lines, each with its gutter and line end.
  std::string finish();

 private:
  void set_masked(bool masked);
  void put(std::string_view character);
  void end_line();
  void wrap();
  MaskStyle style_;
  int width_;
  std::string out_, line_;
  int column_ = 0;
  size_t break_at_ = 0;  // behind the line's last blank, 0: there is none
  int break_column_ = 0;
  bool break_masked_ = false;
  bool masked_ = false;
};

}  // namespace plimsoll::cli
