// What the commands have in common that read people's files: how they are asked, and what they say was passed
// over.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/table.h"
#include "data/text/example.h"
#include "io/tree.h"

namespace plimsoll::cli {

/// --threads, --text-key, --on-error, --json.
struct ReadingArguments {
  std::string text_key;
  std::string on_error = "fail";
  int threads = 0;
  bool json = false;

  [[nodiscard]] OnError when_unusable() const { return on_error == "skip" ? OnError::kSkip : OnError::kFail; }
  /// As many as asked for, else the CPUs at hand.
  [[nodiscard]] int num_threads() const;
};
void add_reading_options(Parser command, ReadingArguments& arguments, const std::string& threads_text);

/// Examples that were passed over, by reason.
Tree skipped_tree(const SkipCounts& skipped);
/// The same as rows of two cells.
void add_skipped(Table& table, const SkipCounts& skipped);

}  // namespace plimsoll::cli
