// plimsoll inspect --formats: what the number formats are, and the schemes that share scales over them.
#include <fmt/format.h>

#include "cli/inspect/inspect.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "numerics/blocks.h"

namespace plimsoll::cli {
namespace {

using numerics::FormatInfo;
using numerics::SchemeInfo;

std::string number(double value) { return value == 0 ? "-" : fmt::format("{:.6g}", value); }
std::string yes(bool value) { return value ? "yes" : "no"; }

std::string field_widths(const FormatInfo& f) {
  if (f.exponent_bits == 0) return "-";
  return fmt::format("{}/{}/{}", f.sign_bits, f.exponent_bits, f.mantissa_bits);
}

std::string block_text(const SchemeInfo& s) {
  if (s.block_rows > 0) return fmt::format("{} x {}", s.block_rows, s.block_cols);
  return s.has_tensor_scale ? "tensor" : "-";
}

std::string scale_text(const SchemeInfo& s) {
  if (s.block_rows == 0 && !s.has_tensor_scale) return "-";
  return std::string(numerics::info(s.scales).name) +
         (s.block_rows > 0 && s.has_tensor_scale ? " + fp32" : "");
}

void print_format_table() {
  using enum Table::Align;
  Table table({{"format"},
               {"bits", kRight},
               {"sign/exp./mant.", kRight},
               {"bias", kRight},
               {"largest", kRight},
               {"least normal", kRight},
               {"least subnormal", kRight},
               {"step at 1", kRight},
               {"infinity"},
               {"NaN"},
               {"source"}});
  for (const FormatInfo& f : numerics::formats())
    table.add({std::string(f.name), std::to_string(f.bits), field_widths(f),
               f.exponent_bits > 0 ? std::to_string(f.bias) : "-", number(f.max), number(f.smallest_normal),
               number(f.smallest_subnormal), number(f.epsilon), yes(f.has_infinity), yes(f.has_nan),
               std::string(f.source)});
  print_text(table.text());
}

void print_scheme_table() {
  using enum Table::Align;
  Table table({{"--as"}, {"codes"}, {"block"}, {"scale"}, {"bits a number", kRight}, {"a scale is"}});
  for (const SchemeInfo& s : numerics::schemes())
    table.add({std::string(s.name), std::string(numerics::info(s.codes).name), block_text(s), scale_text(s),
               fmt::format("{:.6g}", numerics::bits_per_value(s.scheme)), std::string(s.rule)});
  print_text("\n" + table.text());
}

io::Tree json_of(const FormatInfo& f) {
  const auto integer = [](int value) { return io::Tree::of(static_cast<int64_t>(value)); };
  const auto known = [](double value) { return value == 0 ? io::Tree{} : io::Tree::of(value); };
  return io::Tree::map({{"event", io::Tree::of(std::string("format"))},
                        {"name", io::Tree::of(std::string(f.name))},
                        {"bits", integer(f.bits)},
                        {"stored_bits", integer(f.stored_bits)},
                        {"sign_bits", integer(f.sign_bits)},
                        {"exponent_bits", integer(f.exponent_bits)},
                        {"mantissa_bits", integer(f.mantissa_bits)},
                        {"bias", f.exponent_bits > 0 ? integer(f.bias) : io::Tree{}},
                        {"max", io::Tree::of(f.max)},
                        {"smallest_normal", known(f.smallest_normal)},
                        {"smallest_subnormal", known(f.smallest_subnormal)},
                        {"epsilon", io::Tree::of(f.epsilon)},
                        {"infinity", io::Tree::of(f.has_infinity)},
                        {"nan", io::Tree::of(f.has_nan)},
                        {"source", io::Tree::of(std::string(f.source))}});
}

io::Tree json_of(const SchemeInfo& s) {
  return io::Tree::map({{"event", io::Tree::of(std::string("scheme"))},
                        {"name", io::Tree::of(std::string(s.name))},
                        {"codes", io::Tree::of(std::string(numerics::info(s.codes).name))},
                        {"block_rows", io::Tree::of(s.block_rows)},
                        {"block_cols", io::Tree::of(s.block_cols)},
                        {"scale", io::Tree::of(scale_text(s))},
                        {"bits_per_value", io::Tree::of(numerics::bits_per_value(s.scheme))},
                        {"rule", io::Tree::of(std::string(s.rule))}});
}

}  // namespace

Status inspect_formats(bool json) {
  if (!json) {
    print_format_table();
    print_scheme_table();
    return Ok{};
  }
  for (const FormatInfo& f : numerics::formats()) fmt::print("{}\n", io::to_json(json_of(f)));
  for (const SchemeInfo& s : numerics::schemes()) fmt::print("{}\n", io::to_json(json_of(s)));
  return Ok{};
}

}  // namespace plimsoll::cli
