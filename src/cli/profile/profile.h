// plimsoll profile: where a step's time goes.
#pragma once

#include "cli/commands.h"

namespace plimsoll::cli {

Command add_profile(Parser app);

}  // namespace plimsoll::cli
