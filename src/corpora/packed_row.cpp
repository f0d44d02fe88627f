#include "corpora/packed_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plimsoll::corpora {
namespace {

std::string several(std::string_view name, size_t values, size_t ids) {
  return fmt::format("\"{}\" has {} values, \"input_ids\" {}", name, values, ids);
}

}  // namespace

std::optional<std::string> PackedRow::agree(std::string_view name, std::vector<size_t> begins) {
  // A document that begins with padding begins behind it.
  for (size_t& begin : begins)
    while (begin < size_ && is_padding(begin)) ++begin;
  while (!begins.empty() && begins.back() == size_) begins.pop_back();
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  if (first_.empty()) {
    first_ = name;
    begins_ = std::move(begins);
    return std::nullopt;
  }
  const auto [mine, theirs] = std::ranges::mismatch(begins, begins_);
  if (mine == begins.end() && theirs == begins_.end()) return std::nullopt;
  const size_t at = std::min(mine == begins.end() ? size_ : *mine, theirs == begins_.end() ? size_ : *theirs);
  return fmt::format("\"{}\" and \"{}\" disagree about where documents begin (token {})", first_, name,
                     at + 1);
}

std::optional<std::string> PackedRow::by_lengths(std::string_view name, std::span<const int32_t> lengths) {
  std::vector<size_t> begins;
  size_t end = 0;
  for (const int32_t length : lengths) {
    if (length < 1) return fmt::format("\"{}\" holds {}, expected lengths from 1 on", name, length);
    begins.push_back(end);
    end += static_cast<size_t>(length);
  }
  size_t padded = std::min(end, size_);
  while (padded < size_ && is_padding(padded)) ++padded;
  if (end > size_ || padded < size_)
    return fmt::format("\"{}\" adds up to {}, and \"input_ids\" has {} values", name, end, size_);
  return agree(name, std::move(begins));
}

std::optional<std::string> PackedRow::by_bounds(std::string_view name, std::span<const int32_t> bounds) {
  if (bounds.size() < 2 || bounds[0] != 0)
    return fmt::format("\"{}\" {}, expected it to begin with 0 and end after the last token", name,
                       bounds.empty() ? std::string("is empty") : fmt::format("begins with {}", bounds[0]));
  std::vector<int32_t> lengths;
  for (size_t i = 1; i < bounds.size(); ++i) {
    if (bounds[i] <= bounds[i - 1])
      return fmt::format("\"{}\" goes from {} to {}, expected it to increase", name, bounds[i - 1],
                         bounds[i]);
    lengths.push_back(bounds[i] - bounds[i - 1]);
  }
  auto wrong = by_lengths(name, lengths);
  if (wrong && static_cast<size_t>(bounds.back()) != size_)
    return fmt::format("\"{}\" ends with {}, and \"input_ids\" has {} values", name, bounds.back(), size_);
  return wrong;
}

std::optional<std::string> PackedRow::by_positions(std::string_view name,
                                                   std::span<const int32_t> positions) {
  if (positions.size() != size_) return several(name, positions.size(), size_);
  std::vector<size_t> begins;
  int64_t next = 0;
  for (size_t i = 0; i < size_; ++i) {
    if (is_padding(i)) continue;
    if (begins.empty() && positions[i] != 0)
      return fmt::format("\"{}\" begins with {}, expected 0", name, positions[i]);
    if (positions[i] == 0) {
      begins.push_back(i);
      next = 0;
    }
    if (positions[i] != next)
      return fmt::format("\"{}\" holds {} at token {}, expected {}, or 0 where a document begins", name,
                         positions[i], i + 1, next);
    ++next;
  }
  return agree(name, std::move(begins));
}

std::optional<std::string> PackedRow::by_numbers(std::string_view name, std::span<const int32_t> numbers) {
  if (numbers.size() != size_) return several(name, numbers.size(), size_);
  std::vector<size_t> begins;
  size_t before = size_;
  for (size_t i = 0; i < size_; ++i) {
    if (is_padding(i)) continue;
    if (before == size_ || numbers[i] != numbers[before]) begins.push_back(i);
    before = i;
  }
  return agree(name, std::move(begins));
}

}  // namespace plimsoll::corpora
