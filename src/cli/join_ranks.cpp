#include "cli/join_ranks.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/host.h"
#include "base/process.h"
#include "cli/exit_code.h"
#include "devices/devices.h"
#include "ranks/mpi_library.h"
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

/// What the run file says. A launcher that says the same knows more.
ranks::Launch named_launch(const settings::DistributedSettings& d,
                           const std::optional<ranks::Launch>& found) {
  ranks::Launch named{.rank = static_cast<int>(d.rank.value_or(found ? found->rank : 0)),
                      .ranks = static_cast<int>(*d.ranks),
                      .source = "distributed.rank",
                      .job = found ? found->job : fmt::format("parent.{}", ::getppid())};
  named.local_rank = named.rank;
  named.local_ranks = named.ranks;
  if (found && found->rank == named.rank && found->ranks == named.ranks) named = *found;
  if (!d.address.empty()) named.address = d.address;
  return named;
}

/// `found`: what the environment says.
Result<std::optional<ranks::Launch>> find_launch(const RunArguments& arguments,
                                                 std::optional<ranks::Launch> found) {
  const auto loaded = settings::load_distributed(arguments.file, arguments.overrides);
  if (!loaded && found) return loaded.error();
  if (!loaded) return found;  // load_run tells
  const settings::DistributedSettings& d = *loaded;
  if (d.launcher == "none") return std::optional<ranks::Launch>();
  if (settings::names_rank(d) && d.ranks && *d.ranks > 1) return std::optional(named_launch(d, found));
  if (found && d.rank)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("distributed.rank is {}, and {} says which rank a process is", *d.rank, found->source),
        "distributed.rank", "leave it out, or set distributed.ranks to their number too"};
  if (found && d.ranks && *d.ranks != found->ranks)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("distributed.ranks is {}, and {} has started {}", *d.ranks, found->source, found->ranks),
        "distributed.ranks", "leave it out: the launcher says how many there are"};
  if (found && !d.address.empty()) found->address = d.address;
  return found;
}

/// Whether ranks that may choose exchange by NCCL: each of those on this machine has a card of its own, and
/// the library is found.
bool finds_nccl(const ranks::Launch& launch, const settings::RunConfig& config) {
  return config.runtime.device == "cuda" && devices::num_cuda_cards() >= launch.local_ranks &&
         devices::nccl_library().ok();
}

/// The transport of what the hosts exchange, and what ops between ranks use, which may be NCCL.
struct Transports {
  std::string host, ops;
};
Result<Transports> transports_of(const ranks::Launch& launch, const settings::RunConfig& config) {
  const std::string& wanted = config.distributed.transport;
  const bool by_cards = wanted == "nccl" || (wanted == "auto" && finds_nccl(launch, config));
  PLIMSOLL_ASSIGN(const std::string host,
                  ranks::choose_transport(launch, wanted == "nccl" ? "auto" : wanted, by_cards));
  if (!by_cards) return Transports{host, host};
  PLIMSOLL_ASSIGN(const devices::NcclLibrary nccl, devices::nccl_library());
  if (launch.rank == 0)
    note(fmt::format("cards exchange gradients through NCCL {} ({})", nccl.version, nccl.path));
  return Transports{host, "nccl"};
}

/// Opens MPI's library where ranks exchange by it.
Result<std::shared_ptr<ranks::MpiCalls>> mpi_of(const ranks::Launch& launch, const std::string& library,
                                                const std::string& transport) {
  if (transport != "mpi") return std::shared_ptr<ranks::MpiCalls>();
  PLIMSOLL_ASSIGN(const ranks::MpiLibrary found, ranks::find_mpi(launch, library));
  if (launch.rank == 0)
    note(fmt::format("ranks exchange gradients through {} ({})", found.version, found.path));
  return found.calls;
}

/// A rank's part of the CPUs of this machine. mpirun binds few ranks to one each.
int threads_of(const ranks::Launch& launch) {
  const int own = num_available_cpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool knows = ::sched_getaffinity(::getppid(), sizeof set, &set) == 0;
  const int launchers = knows ? std::max(own, CPU_COUNT(&set)) : own;
  const int part = launchers / launch.local_ranks;
  if (launch.rank == 0 && own < part && launch.launcher == ranks::Launcher::kOpenMpi)
    note(fmt::format("{} has bound this rank to {} of {} CPUs; with --bind-to none it may use {}",
                     launch.source, own, launchers, part));
  return ranks::threads_of_rank(launch, own, launchers);
}

/// By what the hosts of ranks exchange.
struct HostWay {
  std::shared_ptr<ranks::MpiCalls> mpi = {};
  bool over_channel = false;
};

/// Adds to the overrides what follows from a rank's place, and opens what it exchanges by. A number of
/// threads that was given stays.
Result<HostWay> add_place(const ranks::Launch& launch, RunArguments& arguments) {
  const auto add = [&](std::string text) { arguments.overrides.push_back(std::move(text)); };
  add(fmt::format("distributed.ranks={}", launch.ranks));
  add(fmt::format("distributed.rank={}", launch.rank));
  PLIMSOLL_ASSIGN(
      const settings::RunConfig config,
      settings::load_run_config(arguments.file, arguments.overrides, settings::RunUse::kTraining));
  if (!config.runtime.threads) add(fmt::format("runtime.threads={}", threads_of(launch)));
  const settings::DistributedSettings& d = config.distributed;
  PLIMSOLL_ASSIGN(const Transports transports, transports_of(launch, config));
  add("distributed.transport=" + transports.ops);
  PLIMSOLL_ASSIGN(auto mpi, mpi_of(launch, d.library, transports.host));
  return HostWay{std::move(mpi), transports.host == ranks::kChannel};
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
  devices::set_local_rank((*launch)->local_rank);
  const auto way = add_place(**launch, arguments);
  if (!way) return told(way.error());
  auto group = ranks::Group::join(**launch, {.deadline_seconds = deadline_seconds(),
                                             .build = build(),
                                             .mpi = way->mpi,
                                             .over_channel = way->over_channel,
                                             .end_process = end_process});
  if (!group && group.error().code == ErrorCode::kInvalidArgument) return told(group.error());
  if (group && (*launch)->rank == 0)
    note(fmt::format("{} started {} ranks: each computes a share of every step", (*launch)->source,
                     (*launch)->ranks));
  return group;
}

}  // namespace plimsoll::cli
