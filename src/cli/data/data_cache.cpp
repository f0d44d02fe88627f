// plimsoll data cache: what runs keep of tokenized data, and its removal.
#include "preprocessing/data_cache.h"

#include <fmt/format.h>

#include <chrono>

#include "base/duration.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/data/data_json.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "io/tree.h"

namespace plimsoll::cli {
namespace {

struct DataCacheArguments {
  std::string folder;
  std::string limit;
  bool clear = false;
  bool json = false;
};

/// A run's own cache is the folder `data` in its output.dir.
Result<std::string> cache_folder(const std::string& path) {
  PLIMSOLL_ASSIGN(const bool is_folder, io::is_folder(path));
  if (!is_folder)
    return Error{ErrorCode::kBadData, "there is no such folder", path,
                 "name a run's data.cache_dir or its output.dir"};
  PLIMSOLL_ASSIGN(const auto entries, preprocessing::list_data_cache(path));
  const std::string own = path + "/data";
  PLIMSOLL_ASSIGN(const bool has_own, io::is_folder(own));
  return entries.empty() && has_own ? own : path;
}

Result<preprocessing::CacheTrim> remove_entries(const DataCacheArguments& a, const std::string& folder) {
  Bytes limit;
  if (!a.clear) {
    PLIMSOLL_ASSIGN(limit, parse_bytes(a.limit));
  }
  PLIMSOLL_ASSIGN(const preprocessing::CacheTrim trim, preprocessing::trim_data_cache(folder, limit.count));
  if (trim.is_busy)
    return Error{ErrorCode::kIo, "a run is preparing its data here, so nothing is removed", folder,
                 "try again when it trains"};
  return trim;
}

double age_seconds(const preprocessing::CacheEntry& entry) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t passed = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - entry.used_at;
  return static_cast<double>(passed > 0 ? passed : 0) * 1e-9;
}

void print_json(const std::string& folder, const std::vector<preprocessing::CacheEntry>& entries,
                int64_t bytes, const preprocessing::CacheTrim& trim) {
  io::Tree files = io::Tree::list();
  for (const preprocessing::CacheEntry& entry : entries)
    files.items.push_back(io::Tree::map({{"name", json_text(entry.name)},
                                         {"bytes", io::Tree::of(entry.bytes)},
                                         {"age_seconds", io::Tree::of(age_seconds(entry))},
                                         {"in_use", io::Tree::of(entry.in_use)}}));
  fmt::print("{}\n", io::to_json(io::Tree::map({{"event", json_text("data_cache")},
                                                {"path", json_text(folder)},
                                                {"bytes", io::Tree::of(bytes)},
                                                {"removed_files", io::Tree::of(trim.removed_files)},
                                                {"removed_bytes", io::Tree::of(trim.removed_bytes)},
                                                {"files", std::move(files)}})));
}

void print_table(const std::string& folder, const std::vector<preprocessing::CacheEntry>& entries,
                 int64_t bytes, const preprocessing::CacheTrim& trim) {
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"file"}, {"size", kRight}, {"last used", kRight}, {""}});
  for (const preprocessing::CacheEntry& entry : entries)
    table.add({entry.name, to_string(Bytes(entry.bytes)), duration_text(age_seconds(entry)) + " ago",
               entry.in_use ? "in use" : ""});
  if (!entries.empty()) print_text(table.text() + "\n");
  if (trim.removed_files > 0)
    print_text(fmt::format("removed {}, {}\n", counted(trim.removed_files, "file"),
                           to_string(Bytes(trim.removed_bytes))));
  print_text(fmt::format("{}: {}, {}\n", printable(folder),
                         counted(static_cast<int64_t>(entries.size()), "file"), to_string(Bytes(bytes))));
}

Status show(const DataCacheArguments& a) {
  if (a.clear && !a.limit.empty())
    return Error{ErrorCode::kInvalidArgument, "--clear and --limit contradict each other",
                 "plimsoll data cache", "give one of them"};
  PLIMSOLL_ASSIGN(const std::string folder, cache_folder(a.folder));
  preprocessing::CacheTrim trim;
  if (a.clear || !a.limit.empty()) {
    PLIMSOLL_ASSIGN(trim, remove_entries(a, folder));
  }
  PLIMSOLL_ASSIGN(const auto entries, preprocessing::list_data_cache(folder));
  int64_t bytes = 0;
  for (const preprocessing::CacheEntry& entry : entries) bytes += entry.bytes;
  a.json ? print_json(folder, entries, bytes, trim) : print_table(folder, entries, bytes, trim);
  return Ok{};
}

void add_data_cache_options(Parser command, DataCacheArguments& a) {
  command.add_option("folder", a.folder, "a run's data.cache_dir, or its output.dir")
      .required()
      .type_name("DIR");
  command.add_flag("--clear", a.clear, "remove everything that no running run uses");
  command.add_option("--limit", a.limit, "remove the least recently used files until the rest fits this size")
      .type_name("SIZE");
  command.add_flag("--json", a.json, "print one JSON object on stdout and nothing else");
  command.footer(
      "The next run that needs removed data tokenizes and packs it again. Runs limit the cache themselves "
      "after\n"
      "they have prepared their data: output.data_cache_limit.\n"
      "examples: plimsoll data cache runs/one\n"
      "          plimsoll data cache /data/cache --limit 50GiB\n"
      "exit codes: 0, 2 usage, 65 no such folder, 74 I/O, or a run is preparing its data there");
}

}  // namespace

Command add_data_cache(Parser data) {
  return add_command<DataCacheArguments>(data, "cache", "list and remove tokenized data that runs keep",
                                         add_data_cache_options, show);
}

}  // namespace plimsoll::cli
