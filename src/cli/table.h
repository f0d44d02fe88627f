// Text for a terminal: columns that line up, numbers that can be read, nothing from a file that could steer
// the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::cli {

/// Control characters spelled out (\x1b, \x0a); everything else as it is.
std::string printable(std::string_view text);
/// "1 tensor", "272 tensors".
std::string counted(int64_t number, const std::string& noun);

/// In units of 10^6, as speeds are given in.
inline double megabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A row; missing cells are empty. Cells are made printable.
  void add(std::vector<std::string> cells);
  /// The title line, where any column has a title, and the rows; two blanks between columns, none at the ends
  /// of lines. Widths are counted in characters.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace plimsoll::cli
