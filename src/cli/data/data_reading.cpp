#include "cli/data/data_reading.h"

#include <fmt/format.h>

#include "base/numbers.h"
#include "base/process.h"

namespace plimsoll::cli {

int ReadingArguments::num_threads() const { return threads > 0 ? threads : num_available_cpus(); }

void add_reading_options(Parser command, ReadingArguments& arguments, const std::string& threads_text) {
  command.add_option("--threads", arguments.threads, threads_text).range(1, 1024);
  command.add_option("--text-key", arguments.text_key, "member of a JSON line that holds the text")
      .type_name("NAME");
  command.add_option("--on-error", arguments.on_error, "unusable examples: stop, or skip and count them")
      .one_of({"fail", "skip"})
      .show_default();
  command.add_flag("--json", arguments.json, "print one JSON object on stdout and nothing else");
}

io::Tree skipped_tree(const corpora::SkipCounts& skipped) {
  io::Tree tree = io::Tree::map();
  for (const auto& [reason, count] : skipped.by_reason) tree.set(reason, io::Tree::of(count));
  return tree;
}

void add_skipped(Table& table, const corpora::SkipCounts& skipped) {
  std::string label = "skipped";
  for (const auto& [reason, count] : skipped.by_reason) {
    table.add({label, fmt::format("{} ({})", grouped(count), reason)});
    label.clear();
  }
}

}  // namespace plimsoll::cli
