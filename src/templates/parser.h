// A template's text into its tree.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "templates/program.h"

namespace plimsoll::templates {

/// Lexes, parses and resolves a template (valid UTF-8).
/// Errors: kBadData with what and "line N": broken syntax; a tag, filter, test or function that is not known;
/// nested too deep.
Result<std::unique_ptr<Program>> compile(std::string_view text);

}  // namespace plimsoll::templates
