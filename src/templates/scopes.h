// Resolves the names of a template to variables before it runs, with Jinja2's scoping rules: loops, macros,
// {% call %}, {% filter %}, {% set %} blocks and {% generation %} open a scope, {% if %} does not.
#pragma once

#include "base/result.h"
#include "templates/program.h"

namespace plimsoll::templates {

/// Fills the scopes and the names of a parsed program.
/// Errors: kBadData: a call of a function that is not known and not asked after ("f is defined").
Status resolve_names(Program& program);

}  // namespace plimsoll::templates
