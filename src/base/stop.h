// Lets a caller stop long work at a point from which it can be resumed.
#pragma once

#include <functional>
#include <string_view>

namespace plimsoll {

/// Asked often, from the thread that works: what asked to stop, as messages name it ("SIGTERM"); empty: go
/// on.
using Stop = std::function<std::string_view()>;

inline bool is_asked(const Stop& stop) { return stop && !stop().empty(); }

}  // namespace plimsoll
