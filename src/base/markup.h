// Text within XML, as pictures have it.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll {

/// With &, <, > and " as entities: for an element's text and an attribute's value.
std::string escaped_markup(std::string_view text);

}  // namespace plimsoll
