// The parts of inspect that every kind prints with.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/numbers.h"
#include "base/process.h"
#include "base/units.h"
#include "cli/inspect/inspect.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/tensor_stats.h"

namespace plimsoll::cli {
namespace {

/// What tensors amount to.
struct TensorTotals {
  int64_t tensors = 0, elements = 0, bytes = 0;
  void add(const io::SafetensorsTensor& tensor) {
    ++tensors;
    elements += tensor.num_elements();
    bytes += tensor.bytes;
  }
};

TensorTotals sum_of(const std::vector<io::WeightRef>& refs) {
  TensorTotals totals;
  for (const io::WeightRef& ref : refs) totals.add(*ref.tensor);
  return totals;
}

std::map<std::string, TensorTotals> by_dtype(const std::vector<io::WeightRef>& refs) {
  std::map<std::string, TensorTotals> dtypes;
  for (const io::WeightRef& ref : refs) dtypes[ref.tensor->dtype].add(*ref.tensor);
  return dtypes;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string shape_text(const io::SafetensorsTensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

io::Tree tensor_json(const io::WeightRef& ref, const io::TensorStats& stats) {
  const io::SafetensorsTensor& t = *ref.tensor;
  std::vector<io::Tree> shape;
  for (const int64_t extent : t.shape) shape.push_back(io::Tree::of(extent));
  io::Tree object = io::Tree::map({{"event", io::Tree::of(std::string("tensor"))},
                                   {"name", io::Tree::of(t.name)},
                                   {"file", io::Tree::of(ref.file->path())},
                                   {"dtype", io::Tree::of(t.dtype)},
                                   {"shape", io::Tree::list(std::move(shape))},
                                   {"elements", io::Tree::of(t.num_elements())},
                                   {"bytes", io::Tree::of(t.bytes)},
                                   {"offset", io::Tree::of(t.offset)}});
  if (!io::has_statistics(t.dtype)) return object;
  const auto number = [&](double value) { return stats.finite > 0 ? io::Tree::of(value) : io::Tree{}; };
  object.set("min", number(stats.min));
  object.set("max", number(stats.max));
  object.set("mean", number(stats.mean));
  object.set("std", number(stats.std));
  object.set("zeros", io::Tree::of(stats.zeros));
  object.set("non_finite", io::Tree::of(stats.elements - stats.finite));
  return object;
}

std::vector<std::string> tensor_row(const io::SafetensorsTensor& t, const io::TensorStats& stats) {
  std::vector<std::string> row = {t.name, t.dtype, shape_text(t), to_string(Bytes(t.bytes))};
  if (stats.elements == 0) return row;
  if (stats.finite > 0)
    for (const double value : {stats.min, stats.max, stats.mean, stats.std})
      row.push_back(fmt::format("{:.4g}", value));
  else
    row.insert(row.end(), 4, "-");
  row.push_back(share_text(stats.zeros, stats.elements));
  row.push_back(grouped(stats.elements - stats.finite));
  return row;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const auto take = [](std::string_view& text) {
        text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
        size_t n = 0;
        while (n < text.size() && is_digit(text[n])) ++n;
        const std::string_view digits = text.substr(0, n);
        text.remove_prefix(n);
        return digits;
      };
      const std::string_view x = take(a), y = take(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

std::string share_text(int64_t part, int64_t whole) {
  if (part == 0) return "0";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.1 ? "<0.1%" : fmt::format("{:.1f}%", percent);
}

Facts::Facts(const std::string& event) : object_(io::Tree::map({{"event", io::Tree::of(event)}})) {}

void Facts::add(const std::string& key, io::Tree value, const std::string& label, const std::string& text) {
  object_.set(key, std::move(value));
  if (!label.empty()) line(label, text);
}

void Facts::line(const std::string& label, const std::string& text) { lines_.emplace_back(label, text); }

void Facts::print(bool json) const {
  if (json) {
    fmt::print("{}\n", io::to_json(object_));
    return;
  }
  Table table({{""}, {""}});
  for (const auto& [label, text] : lines_) table.add({label, text});
  print_text(table.text());
}

std::string dtypes_text(const std::vector<io::WeightRef>& tensors) {
  const auto dtypes = by_dtype(tensors);
  std::string text;
  for (const auto& [dtype, totals] : dtypes)
    text += (text.empty() ? "" : ", ") + dtype +
            (dtypes.size() == 1 ? "" : fmt::format(" ({})", counted(totals.tensors, "tensor")));
  return text;
}

void add_totals(Facts& facts, const std::vector<io::WeightRef>& tensors) {
  const auto object = [](const TensorTotals& totals) {
    return io::Tree::map({{"tensors", io::Tree::of(totals.tensors)},
                          {"elements", io::Tree::of(totals.elements)},
                          {"bytes", io::Tree::of(totals.bytes)}});
  };
  io::Tree dtypes = io::Tree::map();
  for (const auto& [dtype, totals] : by_dtype(tensors)) dtypes.set(dtype, object(totals));
  const TensorTotals all = sum_of(tensors);
  facts.add("tensors", io::Tree::of(all.tensors));
  facts.add("elements", io::Tree::of(all.elements));
  facts.add("tensor_bytes", io::Tree::of(all.bytes));
  facts.add("dtypes", std::move(dtypes));
}

std::vector<io::WeightRef> tensors_of(const io::SafetensorsFile& file) {
  std::vector<io::WeightRef> refs;
  for (const io::SafetensorsTensor& tensor : file.tensors()) refs.push_back({&file, &tensor});
  return refs;
}

Status print_tensors(std::vector<io::WeightRef> tensors, bool json) {
  std::sort(tensors.begin(), tensors.end(), [](const io::WeightRef& a, const io::WeightRef& b) {
    return natural_less(a.tensor->name, b.tensor->name);
  });
  PLIMSOLL_ASSIGN(const auto stats, io::measure_tensors(tensors, num_available_cpus()));
  using enum Table::Align;
  Table table({{"tensor"},
               {"dtype"},
               {"shape"},
               {"size", kRight},
               {"min", kRight},
               {"max", kRight},
               {"mean", kRight},
               {"std", kRight},
               {"zeros", kRight},
               {"non-finite", kRight}});
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (json)
      fmt::print("{}\n", io::to_json(tensor_json(tensors[i], stats[i])));
    else
      table.add(tensor_row(*tensors[i].tensor, stats[i]));
  }
  if (json) return Ok{};
  const TensorTotals all = sum_of(tensors);
  print_text(fmt::format("\n{}\n{}, {}, {}\n", table.text(), counted(all.tensors, "tensor"),
                         counted(all.elements, "element"), to_string(Bytes(all.bytes))));
  return Ok{};
}

}  // namespace plimsoll::cli
