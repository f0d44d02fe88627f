// Manual pages and completion, from what the commands declare.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"

namespace plimsoll::cli {

/// A file's name and content.
using TextFile = std::pair<std::string, std::string>;

/// plimsoll.1, a page a command (plimsoll-train.1, plimsoll-data-inspect.1), and plimsoll-run.5 with every
/// setting of a run file. In roff's man macros. Source: man-pages(7).
std::vector<TextFile> manual_pages(const CommandText& program, const std::string& version);

/// Completion of commands, options, their words, run files and settings.
std::string bash_completion(const CommandText& program);
std::string zsh_completion(const CommandText& program);

}  // namespace plimsoll::cli
