// Finds the document boundaries of a row that was packed before, from any of the members that state them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::corpora {

/// What members of a row say, one after the other. Each returns what is wrong, if anything: with the member,
/// or between it and those before it. `name` is the member's, for messages.
class PackedRow {
 public:
  /// `seen`: 0 where a token is padding; empty: none is.
  PackedRow(size_t size, std::span<const uint8_t> seen) : size_(size), seen_(seen) {}

  /// The tokens of each document, which padding may follow.
  std::optional<std::string> by_lengths(std::string_view name, std::span<const int32_t> lengths);
  /// Where each document begins, from 0 on, and the end of the last one.
  std::optional<std::string> by_bounds(std::string_view name, std::span<const int32_t> bounds);
  /// 0 at each document's first token, and one more with each.
  std::optional<std::string> by_positions(std::string_view name, std::span<const int32_t> positions);
  /// A number for each token that is another one in the next document.
  std::optional<std::string> by_numbers(std::string_view name, std::span<const int32_t> numbers);

  /// Whether there are several documents.
  [[nodiscard]] bool is_packed() const { return begins_.size() > 1; }
  /// Where they begin, among all tokens of the row.
  [[nodiscard]] const std::vector<size_t>& begins() const { return begins_; }

 private:
  [[nodiscard]] bool is_padding(size_t i) const { return !seen_.empty() && seen_[i] == 0; }
  std::optional<std::string> agree(std::string_view name, std::vector<size_t> begins);
  size_t size_;
  std::span<const uint8_t> seen_;
  std::string first_;  ///< the member that begins_ is from; empty: none said anything
  std::vector<size_t> begins_;
};

}  // namespace plimsoll::corpora
