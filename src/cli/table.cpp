#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.h"

namespace plimsoll::cli {
namespace {

/// Characters of UTF-8 text: all bytes but the inner ones.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void append_line(std::string& out, const std::vector<Table::Column>& columns,
                 const std::vector<size_t>& widths, const std::vector<std::string>& cells) {
  std::string line;
  for (size_t c = 0; c < columns.size(); ++c) {
    const std::string blanks(widths[c] - width(cells[c]), ' ');
    if (c > 0) line += "  ";
    line += columns[c].align == Table::Align::kRight ? blanks + cells[c] : cells[c] + blanks;
  }
  out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else
      out += fmt::format("\\x{:02x}", byte);
  }
  return out;
}

std::string counted(int64_t number, const std::string& noun) {
  return grouped(number) + " " + noun + (number == 1 ? "" : "s");
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t widest = width(titles[c]);
    for (const auto& row : rows_) widest = std::max(widest, width(row[c]));
    widths.push_back(widest);
  }
  std::string out;
  if (std::any_of(titles.begin(), titles.end(), [](const auto& title) { return !title.empty(); }))
    append_line(out, columns_, widths, titles);
  for (const auto& row : rows_) append_line(out, columns_, widths, row);
  return out;
}

}  // namespace plimsoll::cli
