// Layers differ in their number alone, so their ops make one row: layers.*.mlp.
#include "cli/explain_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "cli/table.h"
#include "io/json.h"

namespace plimsoll::cli {
namespace {

/// The layer with each part that is a number as a star.
std::string pattern_of(const std::string& layer) {
  std::string pattern;
  for (size_t begin = 0; begin <= layer.size();) {
    const size_t end = std::min(layer.find('.', begin), layer.size());
    const std::string part = layer.substr(begin, end - begin);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](unsigned char c) { return std::isdigit(c) != 0; });
    pattern += (begin > 0 ? "." : "") + (number ? std::string("*") : part);
    begin = end + 1;
  }
  return pattern;
}

struct Row {
  passes::PrecisionChoice choice;
  int64_t count = 0;
};

void print_table(std::span<const passes::PrecisionChoice> choices) {
  std::vector<Row> rows;
  for (passes::PrecisionChoice choice : choices) {
    choice.layer = pattern_of(choice.layer);
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.choice == choice; });
    row == rows.end() ? rows.push_back({std::move(choice), 1}) : void(++row->count);
  }
  using enum Table::Align;
  Table table({{"op"}, {"layer"}, {"ops", kRight}, {"computes in"}, {"stores"}, {"why"}});
  for (const Row& r : rows)
    table.add({r.choice.op, r.choice.layer, std::to_string(r.count), r.choice.computes, r.choice.stores,
               r.choice.why});
  fmt::print("{}", table.text());
}

}  // namespace

void print_precision(std::span<const passes::PrecisionChoice> choices, bool json) {
  if (!json && choices.empty()) fmt::print("Every op computes and stores fp32.\n");
  if (!json && !choices.empty()) return print_table(choices);
  if (!json) return;
  for (const passes::PrecisionChoice& c : choices)
    fmt::print("{}\n", to_json(Tree::map({{"event", Tree::of(std::string("precision"))},
                                          {"op", Tree::of(c.op)},
                                          {"layer", Tree::of(c.layer)},
                                          {"computes", Tree::of(c.computes)},
                                          {"stores", Tree::of(c.stores)},
                                          {"why", Tree::of(c.why)}})));
}

}  // namespace plimsoll::cli
