// Attributes of an op: what is fixed when the program is built. Whatever changes from step to step is a
// value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace plimsoll::ir {

using Attr = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;

/// A small sorted map. No addresses and no run-time scalars in here: programs are compared and cached by
/// text. Copies share what they hold until one of them is changed.
class Attrs {
 public:
  using Entries = std::vector<std::pair<std::string, Attr>>;

  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string_view, Attr>> entries) {
    for (const auto& [key, value] : entries) set(key, value);
  }

  void set(std::string_view key, Attr value);
  [[nodiscard]] const Attr* find(std::string_view key) const;
  /// The value under `key`, which must be there and of that type (the verifier has seen to it).
  [[nodiscard]] int64_t i64(std::string_view key) const;
  [[nodiscard]] double f64(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key) const;  ///< false where absent
  [[nodiscard]] const std::string& str(std::string_view key) const;
  [[nodiscard]] const std::vector<int64_t>& ints(std::string_view key) const;

  [[nodiscard]] const Entries& entries() const;
  bool operator==(const Attrs& other) const {
    return entries_ == other.entries_ || entries() == other.entries();
  }

 private:
  std::shared_ptr<Entries> entries_;  ///< null: none
};

}  // namespace plimsoll::ir
