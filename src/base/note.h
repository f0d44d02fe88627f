// Remarks for people, on stderr; results go to stdout and not through here.
#pragma once

#include <string>

namespace plimsoll {

/// Writes "note: …" as a line of its own to stderr. From any thread.
void note(const std::string& text);
/// From now on `note` writes nothing: for fuzzing, which meets each remark a million times.
void silence_notes();

}  // namespace plimsoll
