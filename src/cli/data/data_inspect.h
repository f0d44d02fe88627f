// plimsoll data inspect: what is in files of tokens.
#pragma once

#include "cli/commands.h"

namespace plimsoll::cli {

/// Adds `inspect` to the command `data`; the returned function is called where it was chosen.
Command add_data_inspect(Parser data);

}  // namespace plimsoll::cli
