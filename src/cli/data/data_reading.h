// Options shared by the commands that read data files: their options, and the report of skipped
// examples.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/table.h"
#include "corpora/example.h"
#include "io/tree.h"

namespace plimsoll::cli {

/// --threads, --text-key, --on-error, --json.
struct ReadingArguments {
  std::string text_key;
  std::string on_error = "fail";
  int threads = 0;
  bool json = false;

  [[nodiscard]] corpora::OnError when_unusable() const {
    return on_error == "skip" ? corpora::OnError::kSkip : corpora::OnError::kFail;
  }
  /// As many as asked for, else the CPUs at hand.
  [[nodiscard]] int num_threads() const;
};
void add_reading_options(Parser command, ReadingArguments& arguments, const std::string& threads_text);

/// Examples that were passed over, by reason.
io::Tree skipped_tree(const corpora::SkipCounts& skipped);
/// The same as rows of two cells.
void add_skipped(Table& table, const corpora::SkipCounts& skipped);

}  // namespace plimsoll::cli
