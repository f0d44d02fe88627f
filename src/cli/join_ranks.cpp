#include "cli/join_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/host.h"
#include "base/process.h"
#include "cli/exit_code.h"
#include "settings/distributed.h"
#include "settings/run_config.h"

namespace plimsoll::cli {
namespace {

/// Two programs of one version and size are taken to be the same.
std::string build() {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(executable_path(), none);
  return fmt::format("{}+{}", PLIMSOLL_VERSION, none ? 0 : bytes);
}

/// For tests: how long a rank may give no sign of life.
double deadline_seconds() {
  const char* text = std::getenv("PLIMSOLL_RANKS_DEADLINE");
  const double seconds = text == nullptr ? 0 : std::strtod(text, nullptr);
  return seconds > 0 ? seconds : ranks::GroupOptions().deadline_seconds;
}

void end_process(const Error& error) { ::_exit(report(error)); }

/// `found`: what the environment says.
Result<std::optional<ranks::Launch>> find_launch(const RunArguments& arguments,
                                                 std::optional<ranks::Launch> found) {
  const auto config =
      settings::load_run_config(arguments.file, arguments.overrides, settings::RunUse::kTraining);
  if (!config && found) return config.error();
  if (!config) return found;  // load_run tells
  const settings::DistributedSettings& d = config->distributed;
  if (d.launcher == "none") return std::optional<ranks::Launch>();
  if (settings::names_rank(d) && d.ranks && *d.ranks > 1) {
    ranks::Launch named{.rank = static_cast<int>(d.rank.value_or(found ? found->rank : 0)),
                        .ranks = static_cast<int>(*d.ranks),
                        .source = "distributed.rank",
                        .job = found ? found->job : fmt::format("parent.{}", ::getppid()),
                        .address = d.address};
    named.local_rank = named.rank;
    named.local_ranks = named.ranks;
    return std::optional(std::move(named));
  }
  if (found && d.ranks && *d.ranks != found->ranks)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("distributed.ranks is {}, and {} has started {}", *d.ranks, found->source, found->ranks),
        "distributed.ranks", "leave it out: the launcher says how many there are"};
  if (found) found->address = d.address;
  return found;
}

/// Adds to the overrides what follows from a rank's place. A number of threads that was given stays.
Status add_place(const ranks::Launch& launch, RunArguments& arguments) {
  PLIMSOLL_TRY(ranks::check_launch(launch));
  arguments.overrides.push_back(fmt::format("distributed.ranks={}", launch.ranks));
  arguments.overrides.push_back(fmt::format("distributed.rank={}", launch.rank));
  PLIMSOLL_ASSIGN(
      const settings::RunConfig config,
      settings::load_run_config(arguments.file, arguments.overrides, settings::RunUse::kTraining));
  if (!config.runtime.threads)
    arguments.overrides.push_back(
        fmt::format("runtime.threads={}", std::max(1, num_available_cpus() / launch.local_ranks)));
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<ranks::Group>> join_ranks(RunArguments& arguments) {
  PLIMSOLL_ASSIGN(const std::optional<ranks::Launch> found, ranks::detect_launch(&std::getenv, ::getppid()));
  // All ranks read one run file: what is wrong with it, rank 0 says.
  const auto told = [&](const Error& error) {
    return found && found->rank > 0 ? Error{error.code, ""} : error;
  };
  const auto launch = find_launch(arguments, found);
  if (!launch) return told(launch.error());
  if (!*launch) return std::unique_ptr<ranks::Group>();
  if (const Status added = add_place(**launch, arguments); !added) return told(added.error());
  auto group = ranks::Group::join(
      **launch, {.deadline_seconds = deadline_seconds(), .build = build(), .end_process = end_process});
  if (group && (*launch)->rank == 0)
    note(fmt::format("{} ranks, started by {}: each has a part of every step", (*launch)->ranks,
                     (*launch)->source));
  return group;
}

}  // namespace plimsoll::cli
