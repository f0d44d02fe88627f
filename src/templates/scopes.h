// Which variable each name of a template means, decided before it runs, as Jinja2 decides it: loops, macros,
// {% call %}, {% filter %}, {% set %} blocks and {% generation %} open a scope, {% if %} does not.
#pragma once

#include "base/result.h"
#include "templates/program.h"

namespace plimsoll::templates {

/// Fills the scopes and the names of a parsed program.
/// Errors: kBadData: a call of a function that is not known and not asked after ("f is defined").
Status resolve_names(Program& program);

}  // namespace plimsoll::templates
