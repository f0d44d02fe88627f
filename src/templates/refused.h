// Jinja2 features that are refused, because templates of public models do not use them: refused by its name,
// apart from what nobody knows.
#pragma once

#include <string>
#include <string_view>

#include "templates/value.h"

namespace plimsoll::templates {

enum class Construct { kFilter, kTest, kTag, kFunction };

/// What to say of one that is not here: "the filter 'truncate' is not supported: …", or "unknown filter 'x'".
std::string no_construct(Construct construct, std::string_view name);
/// Why a value of this kind lacks a method that it has in Python; empty where it has none there.
std::string no_method(Kind owner, std::string_view name);

}  // namespace plimsoll::templates
