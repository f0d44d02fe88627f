// Where a DataLoader stands: it is saved with a session and read on from there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plimsoll/json.h"
#include "plimsoll/json_read.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

struct LoaderState {
  int64_t epoch = 0;
  int64_t position = 0;  ///< batches of that epoch that have been taken

  bool operator==(const LoaderState&) const = default;
  [[nodiscard]] std::string json() const {
    return detail::Json().set("epoch", epoch).set("position", position).text();
  }
  /// The beginning, where the text holds none.
  static LoaderState of_json(std::string_view text) {
    return {detail::json_number<int64_t>(detail::json_value(text, "epoch"), 0),
            detail::json_number<int64_t>(detail::json_value(text, "position"), 0)};
  }
};

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
