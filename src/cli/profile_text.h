// What `plimsoll profile` prints: the table of ops, where a step goes, what of it was put to use.
#pragma once

#include <string>

#include "io/tree.h"
#include "train/profile.h"
#include "train/profile_rows.h"

namespace plimsoll::cli {

/// For people, lines of at most 80 columns; names are longer where the terminal has `columns` for them.
std::string profile_table(const train::Profile& profile, train::ProfileBy by, int columns);
/// For people, lines of at most 80 columns but for hints.
std::string profile_verdict(const train::Profile& profile);
/// {"event": "verdict", …}
Tree verdict_event(const train::Profile& profile);

}  // namespace plimsoll::cli
