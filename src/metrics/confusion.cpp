#include "metrics/confusion.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::metrics {
namespace {

constexpr size_t kMostColumns = 12;  // of a table that a terminal shows
constexpr size_t kMostPairs = 10;
constexpr size_t kLongestName = 16;

/// The name's beginning, cut between characters.
std::string brief(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  size_t end = kLongestName;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end);
}

std::string table(const Confusion& confusion) {
  const size_t classes = confusion.names.size();
  size_t width = 5, first = 5;
  for (const std::string& name : confusion.names) first = std::max(first, brief(name).size());
  for (const uint32_t count : confusion.counts) width = std::max(width, std::to_string(count).size());
  width = std::max(width, std::min(first, size_t{8}));
  std::string out = fmt::format("confusion matrix (rows: class, columns: predicted)\n  {:<{}}", "", first);
  for (const std::string& name : confusion.names)
    out += fmt::format("  {:>{}}", brief(name).substr(0, width), width);
  for (size_t label = 0; label < classes; ++label) {
    out += fmt::format("\n  {:<{}}", brief(confusion.names[label]), first);
    for (size_t predicted = 0; predicted < classes; ++predicted)
      out += fmt::format("  {:>{}}", confusion.at(label, predicted), width);
  }
  return out + "\n";
}

}  // namespace

std::vector<Confusion::Pair> Confusion::most_confused(size_t most) const {
  std::vector<Pair> pairs;
  if (empty()) return pairs;
  for (size_t label = 0; label < names.size(); ++label)
    for (size_t predicted = 0; predicted < names.size(); ++predicted)
      if (label != predicted && at(label, predicted) > 0)
        pairs.push_back({label, predicted, at(label, predicted)});
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.size() > most) pairs.resize(most);
  return pairs;
}

std::string Confusion::text() const {
  if (empty()) return "";
  if (names.size() <= kMostColumns) return table(*this);
  std::string out;
  for (const Pair& pair : most_confused(kMostPairs))
    out += fmt::format("  {} taken for {}: {}\n", names[pair.label], names[pair.predicted], pair.count);
  return out.empty() ? out : "most confused classes\n" + out;
}

}  // namespace plimsoll::metrics
