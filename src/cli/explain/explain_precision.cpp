// Blocks differ in their number alone, so their ops make one row: layers.*.mlp, or layers.3-7.mlp where not
// all blocks are alike.
#include "cli/explain/explain_precision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/table.h"
#include "cli/terminal.h"
#include "io/json.h"

namespace plimsoll::cli {
namespace {

/// A dotted name around the number of its block, if it has one.
struct Numbered {
  std::string before, after;
  std::optional<int> number = {};
};

Numbered numbered(const std::string& name, int32_t block) {
  const std::string number = std::to_string(block);
  const size_t at = ("." + name + ".").find("." + number + ".");
  if (block < 0 || at == std::string::npos) return {name, ""};
  return {name.substr(0, at), name.substr(at + number.size()), block};
}

/// "0-3,7"
std::string ranges(const std::set<int>& numbers) {
  std::string text;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto last = first;
    while (std::next(last) != numbers.end() && *std::next(last) == *last + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", *first);
    if (last != first) text += fmt::format("-{}", *last);
    first = std::next(last);
  }
  return text;
}

/// Rows of a table; those whose names differ in their number alone are one, with a count.
class Rows {
 public:
  /// `all`: the numbers that there are; a star stands for them.
  explicit Rows(const std::set<int>& all) : all_(all) {}

  void add(const std::string& name, int32_t block, std::vector<std::string> cells) {
    Numbered parts = numbered(name, block);
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) {
      return r.before == parts.before && r.after == parts.after && r.cells == cells &&
             r.numbers.empty() != parts.number.has_value();
    });
    if (row == rows_.end())
      row = rows_.insert(row, {std::move(parts.before), std::move(parts.after), {}, std::move(cells)});
    ++row->count;
    if (parts.number) row->numbers.insert(*parts.number);
  }

  /// The name and the count stand before the cell `at`.
  [[nodiscard]] std::string text(std::vector<Table::Column> columns, size_t at) const {
    Table table(std::move(columns));
    for (const Row& row : rows_) {
      const std::string number = row.numbers == all_ && all_.size() > 1 ? "*" : ranges(row.numbers);
      std::vector<std::string> cells = row.cells;
      const auto place = cells.begin() + static_cast<int64_t>(at);
      cells.insert(place, {row.before + number + row.after, std::to_string(row.count)});
      table.add(std::move(cells));
    }
    return table.text();
  }

 private:
  struct Row {
    std::string before, after;
    std::set<int> numbers;
    std::vector<std::string> cells;
    int64_t count = 0;
  };
  const std::set<int>& all_;
  std::vector<Row> rows_;
};

std::set<int> layers_of(const std::vector<planner::WeightStorage>& weights) {
  std::set<int> layers;
  for (const planner::WeightStorage& w : weights)
    if (w.block >= 0) layers.insert(w.block);
  return layers;
}

using enum Table::Align;

std::string ops_table(const std::vector<passes::PrecisionChoice>& choices, const std::set<int>& layers) {
  if (choices.empty()) return "Every op computes and stores fp32.\n";
  Rows rows(layers);
  for (const passes::PrecisionChoice& c : choices) {
    const bool apart = !c.sum.empty() && c.sum != c.stores;
    rows.add(c.layer, c.block,
             {c.op, c.computes, apart ? fmt::format("{}, sum {}", c.stores, c.sum) : c.stores, c.why});
  }
  return rows.text({{"op"}, {"layer"}, {"ops", kRight}, {"computes in"}, {"stores"}, {"why"}}, 1);
}

/// Of the products in FP8; in the order of the program.
std::string fp8_table(const std::vector<passes::Fp8Product>& products, const std::set<int>& layers) {
  Rows rows(layers);
  for (const passes::Fp8Product& p : products)
    rows.add(p.layer, p.block,
             {p.product, p.left.empty() ? "bf16" : p.left, p.right.empty() ? "bf16" : p.right,
              p.computed_in.empty() ? "bf16" : p.computed_in, p.note.empty() ? "-" : p.note});
  return rows.text(
      {{"product"}, {"layer"}, {"products", kRight}, {"left"}, {"right"}, {"computed in"}, {"note"}}, 1);
}

std::string casts_table(const std::vector<planner::CastUse>& casts, const std::set<int>& layers) {
  if (casts.empty())
    return "There are no cast ops: products round operands as they pack them, and results as they store "
           "them.\n";
  Rows rows(layers);
  for (const planner::CastUse& c : casts) {
    const std::string why = c.why + (c.recomputed ? " (recomputed)" : "");
    rows.add(c.layer, c.block,
             {c.program, c.op, fmt::format("[{}]", fmt::join(c.shape, ", ")),
              fmt::format("{} to {}", c.from, c.to), std::to_string(c.uses), why});
  }
  return rows.text({{"program"},
                    {"cast of"},
                    {"layer"},
                    {"casts", kRight},
                    {"shape"},
                    {"dtypes"},
                    {"uses", kRight},
                    {"why"}},
                   2);
}

/// "bf16, rounded as packed"
std::string products_text(const planner::WeightStorage& w) {
  std::vector<std::string> texts;
  for (const std::string& p : w.products)
    texts.push_back(w.stored == "f32" && p != "f32" ? p + ", rounded as packed" : p);
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, "; "));
}

std::string weights_table(const std::vector<planner::WeightStorage>& weights, const std::set<int>& layers) {
  const auto or_none = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
  Rows rows(layers);
  for (const planner::WeightStorage& w : weights)
    rows.add(w.name, w.block,
             {w.stored, or_none(w.master), or_none(w.gradient), or_none(w.moments), or_none(w.rounding),
              products_text(w)});
  return rows.text({{"weight"},
                    {"weights", kRight},
                    {"stored"},
                    {"master"},
                    {"gradient"},
                    {"moments"},
                    {"rounding"},
                    {"multiplied in"}},
                   0);
}

io::Tree text_or_null(const std::string& text) { return text.empty() ? io::Tree{} : io::Tree::of(text); }

template <typename Texts>
io::Tree list_of(const Texts& texts) {
  io::Tree list = io::Tree::list();
  for (const std::string& text : texts) list.items.push_back(io::Tree::of(text));
  return list;
}

io::Tree event_of(const passes::PrecisionChoice& c) {
  io::Tree stores = io::Tree::map({{"y", io::Tree::of(c.stores)}});
  if (!c.sum.empty()) stores.set("sum", io::Tree::of(c.sum));
  return io::Tree::map({{"event", io::Tree::of(std::string("precision"))},
                        {"op", io::Tree::of(c.op)},
                        {"layer", io::Tree::of(c.layer)},
                        {"computes", io::Tree::of(c.computes)},
                        {"stores", std::move(stores)},
                        {"why", io::Tree::of(c.why)}});
}

io::Tree event_of(const passes::Fp8Product& p) {
  return io::Tree::map({{"event", io::Tree::of(std::string("precision_fp8"))},
                        {"layer", io::Tree::of(p.layer)},
                        {"product", io::Tree::of(p.product)},
                        {"left", text_or_null(p.left)},
                        {"right", text_or_null(p.right)},
                        {"computed_in", text_or_null(p.computed_in)},
                        {"note", text_or_null(p.note)}});
}

io::Tree event_of(const planner::CastUse& c) {
  io::Tree shape = io::Tree::list();
  for (const int64_t extent : c.shape) shape.items.push_back(io::Tree::of(extent));
  return io::Tree::map({{"event", io::Tree::of(std::string("precision_cast"))},
                        {"program", io::Tree::of(c.program)},
                        {"op", io::Tree::of(c.op)},
                        {"layer", io::Tree::of(c.layer)},
                        {"shape", std::move(shape)},
                        {"from", io::Tree::of(c.from)},
                        {"to", io::Tree::of(c.to)},
                        {"uses", io::Tree::of(c.uses)},
                        {"readers", list_of(c.readers)},
                        {"recomputed", io::Tree::of(c.recomputed)},
                        {"why", io::Tree::of(c.why)}});
}

io::Tree event_of(const planner::WeightStorage& w) {
  return io::Tree::map({{"event", io::Tree::of(std::string("precision_weight"))},
                        {"weight", io::Tree::of(w.name)},
                        {"stored", io::Tree::of(w.stored)},
                        {"master", text_or_null(w.master)},
                        {"gradient", text_or_null(w.gradient)},
                        {"moments", text_or_null(w.moments)},
                        {"rounding", text_or_null(w.rounding)},
                        {"products", list_of(w.products)}});
}

}  // namespace

void print_precision(const planner::PrecisionReport& report,
                     const std::vector<planner::WeightStorage>& weights, bool json) {
  const auto lines = [](const auto& list) {
    for (const auto& item : list) fmt::print("{}\n", io::to_json(event_of(item)));
  };
  if (!json) {
    const std::set<int> layers = layers_of(weights);
    const bool has_casts = !report.ops.empty() || !report.casts.empty();
    print_text(ops_table(report.ops, layers) + "\n" +
               (report.fp8.empty() ? "" : fp8_table(report.fp8, layers) + "\n") +
               (has_casts ? casts_table(report.casts, layers) + "\n" : "") + weights_table(weights, layers));
    return;
  }
  lines(report.ops);
  lines(report.fp8);
  lines(report.casts);
  lines(weights);
}

}  // namespace plimsoll::cli
