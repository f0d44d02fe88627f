// The text output of `plimsoll profile`: the table of ops, where a step goes, what of it was put to use.
#pragma once

#include <string>

#include "io/tree.h"
#include "profiling/profile.h"
#include "profiling/profile_rows.h"

namespace plimsoll::cli {

/// For people, lines of at most 80 columns; names are longer where the terminal has `columns` for them.
std::string profile_table(const profiling::Profile& profile, profiling::ProfileBy by, int columns);
/// For people, lines of at most 80 columns but for hints.
std::string profile_verdict(const profiling::Profile& profile);
/// {"event": "verdict", …}
io::Tree diagnosis_event(const profiling::Profile& profile);

}  // namespace plimsoll::cli
