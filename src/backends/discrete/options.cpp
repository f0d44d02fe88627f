#include "backends/discrete/options.h"

#include <charconv>
#include <string_view>

namespace plimsoll::discrete {

Result<std::optional<Fault>> parse_fault(const char* text) {
  const std::string_view all = text == nullptr ? "" : text;
  if (all.empty()) return std::optional<Fault>();
  const size_t colon = all.find(':');
  const std::string_view queue = all.substr(0, colon),
                         number = colon == all.npos ? "" : all.substr(colon + 1);
  Fault fault;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), fault.number);
  const bool is_number = code == std::errc() && end == number.data() + number.size() && fault.number > 0;
  for (size_t q = 0; is_number && q < ir::kNumQueues; ++q) {
    fault.queue = static_cast<ir::Queue>(q);
    if (ir::name(fault.queue) == queue) return std::optional<Fault>(fault);
  }
  return Error{ErrorCode::kInvalidArgument, "'" + std::string(all) + "' is no fault", "PLIMSOLL_FAULT",
               "write a queue and the number of its work: compute:1, copy_in:17, copy_out:3"};
}

}  // namespace plimsoll::discrete
