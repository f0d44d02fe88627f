// The members of a line that were found, and how what is wrong with them is said.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "corpora/example.h"
#include "corpora/json_members.h"

namespace plimsoll::corpora {

class ExampleLine {
 public:
  /// `example` says of which file and line it is; outlives this.
  explicit ExampleLine(const Example& example) : example_(example) {}

  Members members = {};

  [[nodiscard]] std::string_view get(std::string_view key) const { return find(members, key); }
  [[nodiscard]] bool has(std::string_view key) const { return !get(key).empty(); }
  [[nodiscard]] BadExample bad(std::string_view reason, std::string what) const;
  [[nodiscard]] std::optional<BadExample> check_once(std::string_view key) const;
  /// Appends the text of a member that must be there.
  std::optional<BadExample> string_into(std::string_view key, std::string& out) const;

 private:
  const Example& example_;
};

}  // namespace plimsoll::corpora
