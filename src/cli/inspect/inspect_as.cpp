// plimsoll inspect FILE --as FORMAT: what rounding does to each tensor, as a table or as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/numbers.h"
#include "cli/inspect/inspect.h"
#include "cli/inspect/inspect_rounder.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/suggest.h"
#include "io/tensor_stats.h"

namespace plimsoll::cli {
namespace {

using numerics::Scheme;

std::string shape_text(const io::SafetensorsTensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

std::string snr_text(const RoundingError& e) {
  if (e.squares == 0) return "-";
  return e.error_squares == 0 ? "exact" : fmt::format("{:.1f}", e.snr_db());
}

std::string count_text(int64_t before, int64_t lost) {
  return lost == 0 ? grouped(before) : fmt::format("{} + {}", grouped(before), grouped(lost));
}

std::vector<std::string> row_of(std::string name, std::string dtype, std::string shape,
                                const RoundingError& e) {
  const auto number = [&](double value) { return e.finite() > 0 ? fmt::format("{:.4g}", value) : "-"; };
  const auto error = [](double value) {
    return value == 0 ? std::string("0") : fmt::format("{:.2e}", value);
  };
  return {std::move(name),
          std::move(dtype),
          std::move(shape),
          number(e.min),
          number(e.max),
          share_text(e.zeros_before, e.elements),
          share_text(e.new_zeros, e.elements),
          share_text(e.clipped, e.elements),
          error(e.relative_error()),
          error(e.mean_relative()),
          snr_text(e),
          count_text(e.nan + e.infinite, e.lost)};
}

Table new_table() {
  using enum Table::Align;
  return Table({{"tensor"},
                {"dtype"},
                {"shape"},
                {"min", kRight},
                {"max", kRight},
                {"zeros before", kRight},
                {"new zeros", kRight},
                {"clipped", kRight},
                {"rel. error", kRight},
                {"mean rel.", kRight},
                {"SNR dB", kRight},
                {"non-finite", kRight}});
}

constexpr const char* kLegend =
    "new zeros: not 0 before, 0 after; clipped: finite and beyond the largest code by more than rounding;\n"
    "rel. error: norm of the differences / norm of the tensor; mean rel.: mean of |difference / number|;\n"
    "non-finite: NaN and infinities before, + finite numbers that are none after; they count in no error\n";

void set_error(io::Tree& object, const RoundingError& e) {
  const auto share = [&](int64_t part) {
    return io::Tree::of(e.elements > 0 ? static_cast<double>(part) / static_cast<double>(e.elements) : 0.0);
  };
  const auto if_finite = [&](double value) { return e.finite() > 0 ? io::Tree::of(value) : io::Tree{}; };
  object.set("elements", io::Tree::of(e.elements));
  object.set("min", if_finite(e.min));
  object.set("max", if_finite(e.max));
  object.set("zeros", io::Tree::of(e.zeros_before + e.new_zeros));
  object.set("zeros_before", io::Tree::of(e.zeros_before));
  object.set("new_zeros", io::Tree::of(e.new_zeros));
  object.set("zero_share", share(e.zeros_before + e.new_zeros));
  object.set("new_zero_share", share(e.new_zeros));
  object.set("clipped", io::Tree::of(e.clipped));
  object.set("clipped_share", share(e.clipped));
  object.set("nan", io::Tree::of(e.nan));
  object.set("infinite", io::Tree::of(e.infinite));
  object.set("lost", io::Tree::of(e.lost));
  object.set("relative_error", io::Tree::of(e.relative_error()));
  object.set("mean_relative_error", io::Tree::of(e.mean_relative()));
  object.set("max_relative_error", io::Tree::of(e.relative_max));
  object.set("snr_db", io::Tree::of(e.snr_db()));  // null where nothing differs
  object.set("exact", io::Tree::of(e.error_squares == 0 && e.lost == 0));
}

io::Tree tensor_object(const char* event, const io::SafetensorsTensor& tensor) {
  std::vector<io::Tree> shape;
  for (const int64_t extent : tensor.shape) shape.push_back(io::Tree::of(extent));
  return io::Tree::map({{"event", io::Tree::of(std::string(event))},
                        {"name", io::Tree::of(tensor.name)},
                        {"dtype", io::Tree::of(tensor.dtype)},
                        {"shape", io::Tree::list(std::move(shape))}});
}

void print_json(const std::vector<RoundedTensor>& subjects,
                const std::vector<const io::SafetensorsTensor*>& passed_over, const RoundingError& total,
                Scheme scheme) {
  const auto name = io::Tree::of(std::string(numerics::info(scheme).name));
  for (const RoundedTensor& s : subjects) {
    io::Tree object = tensor_object("tensor", *s.tensor);
    object.set("as", name);
    set_error(object, s.error);
    fmt::print("{}\n", io::to_json(object));
  }
  for (const io::SafetensorsTensor* tensor : passed_over)
    fmt::print("{}\n", io::to_json(tensor_object("passed_over", *tensor)));
  io::Tree object = io::Tree::map({{"event", io::Tree::of(std::string("total"))},
                                   {"as", name},
                                   {"tensors", io::Tree::of(static_cast<int64_t>(subjects.size()))},
                                   {"passed_over", io::Tree::of(static_cast<int64_t>(passed_over.size()))},
                                   {"bits_per_value", io::Tree::of(numerics::bits_per_value(scheme))}});
  set_error(object, total);
  fmt::print("{}\n", io::to_json(object));
}

void print_table(const InspectArguments& arguments, const std::vector<RoundedTensor>& subjects,
                 const std::vector<const io::SafetensorsTensor*>& passed_over, const RoundingError& total,
                 Scheme scheme) {
  print_text(fmt::format("{} as {}, {:.4g} bits a number\n\n", printable(arguments.path),
                         numerics::info(scheme).name, numerics::bits_per_value(scheme)));
  Table table = new_table();
  for (const RoundedTensor& s : subjects)
    table.add(row_of(s.tensor->name, s.tensor->dtype, shape_text(*s.tensor), s.error));
  table.add(row_of("total", "", counted(static_cast<int64_t>(subjects.size()), "tensor"), total));
  print_text(table.text() + "\n" + kLegend);
  for (const io::SafetensorsTensor* tensor : passed_over)
    print_text(fmt::format("skipped, not floating point: {} {} {}\n", printable(tensor->name), tensor->dtype,
                           shape_text(*tensor)));
  if (!arguments.output.empty()) print_text("written: " + printable(arguments.output) + "\n");
}

Error unknown_format(const std::string& name) {
  const auto names = numerics::scheme_names();
  const std::string asked = io::did_you_mean(name, names);
  return {ErrorCode::kInvalidArgument,
          fmt::format("there is no format '{}'", std::string_view(name).substr(0, 60)), "--as",
          fmt::format("{}the formats are {}", asked.empty() ? asked : asked + " ", fmt::join(names, ", "))};
}

Status check_output(const InspectArguments& arguments) {
  std::error_code code;
  if (arguments.output.empty() || !std::filesystem::equivalent(arguments.path, arguments.output, code))
    return Ok{};
  return Error{ErrorCode::kInvalidArgument, "the output is also the input", arguments.output,
               "name another file after --output"};
}

}  // namespace

Status inspect_as(const InspectArguments& arguments) {
  const auto scheme = numerics::find_scheme(arguments.as);
  if (!scheme) return unknown_format(arguments.as);
  std::error_code code;
  if (std::filesystem::is_directory(arguments.path, code))
    return Error{ErrorCode::kInvalidArgument, "--as takes one safetensors file", arguments.path,
                 "name a file in this folder"};
  PLIMSOLL_TRY(check_output(arguments));
  PLIMSOLL_ASSIGN(const io::SafetensorsFile file, io::SafetensorsFile::open(arguments.path));
  auto refs = tensors_of(file);
  std::sort(refs.begin(), refs.end(), [](const io::WeightRef& a, const io::WeightRef& b) {
    return natural_less(a.tensor->name, b.tensor->name);
  });
  TensorRounder rounder(file, *scheme);
  std::vector<const io::SafetensorsTensor*> passed_over;
  for (const io::WeightRef& ref : refs) {
    if (io::has_statistics(ref.tensor->dtype))
      rounder.take(*ref.tensor);
    else
      passed_over.push_back(ref.tensor);
  }
  if (!arguments.output.empty()) PLIMSOLL_TRY(rounder.create(arguments.output));
  PLIMSOLL_TRY(rounder.run());
  RoundingError total;
  for (const RoundedTensor& subject : rounder.subjects()) total.add(subject.error);
  if (arguments.json)
    print_json(rounder.subjects(), passed_over, total, *scheme);
  else
    print_table(arguments, rounder.subjects(), passed_over, total, *scheme);
  return Ok{};
}

}  // namespace plimsoll::cli
