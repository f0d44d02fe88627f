#include "backends/discrete/options.h"

#include <charconv>
#include <string_view>

#include "ir/network_queue.h"

namespace plimsoll::discrete {

Result<std::optional<Fault>> parse_fault(const char* text) {
  const std::string_view whole = text == nullptr ? "" : text;
  if (whole.empty()) return std::optional<Fault>();
  const bool flips = whole.starts_with("compute:") && whole.ends_with(":flip");
  const std::string_view all = whole.substr(0, whole.size() - (flips ? 5 : 0));
  const size_t colon = all.find(':');
  const std::string_view queue = all.substr(0, colon),
                         number = colon == all.npos ? "" : all.substr(colon + 1);
  Fault fault{.flips = flips};
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), fault.number);
  const bool is_number = code == std::errc() && end == number.data() + number.size() && fault.number > 0;
  for (size_t q = 0; is_number && q < ir::kNumAllQueues; ++q) {
    fault.queue = static_cast<ir::Queue>(q);
    if (ir::name(fault.queue) == queue) return std::optional<Fault>(fault);
  }
  return Error{ErrorCode::kInvalidArgument, "'" + std::string(whole) + "' is no fault", "PLIMSOLL_FAULT",
               "write a queue and the number of its work: compute:1, copy_in:17, copy_out:3, compute:1:flip"};
}

}  // namespace plimsoll::discrete
