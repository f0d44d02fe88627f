#include "cli/doctor_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/host.h"
#include "cli/data/data_json.h"
#include "devices/devices.h"
#include "ranks/mpi_library.h"

namespace plimsoll::cli {
namespace {

std::vector<RanksReport::Library> installed() {
  std::vector<RanksReport::Library> found;
  for (const std::string& name : ranks::mpi_names(ranks::Launcher::kAnyMpi)) {
    const auto text = run_apart([&]() -> Result<std::string> {
      PLIMSOLL_ASSIGN(const ranks::MpiLibrary library, ranks::open_mpi(name));
      return library.path + "\n" + library.version;
    });
    if (!text) continue;
    const size_t line = text->find('\n');
    found.push_back({text->substr(0, line), text->substr(line + 1)});
  }
  return found;
}

RanksReport::Library installed_nccl(std::string& why_not) {
  const auto text = run_apart([&]() -> Result<std::string> {
    PLIMSOLL_ASSIGN(const devices::NcclLibrary library, devices::nccl_library());
    return library.path + "\n" + library.version;
  });
  if (!text) {
    why_not = text.error().what;
    return {};
  }
  const size_t line = text->find('\n');
  return {text->substr(0, line), text->substr(line + 1)};
}

/// In a process of its own, too: what is opened here would stay open.
std::string why_no_mpi(const ranks::Launch& launch) {
  if (launch.launcher == ranks::Launcher::kNoMpi) return "";
  const auto found = run_apart([&]() -> Result<std::string> {
    PLIMSOLL_ASSIGN(const ranks::MpiLibrary library, ranks::find_mpi(launch, ""));
    return library.path;
  });
  return found ? "" : found.error().what + ": " + found.error().hint;
}

}  // namespace

RanksReport look_at_ranks() {
  RanksReport report{.launcher = {}, .mpi = installed()};
  report.nccl = installed_nccl(report.no_nccl);
  const auto launch = ranks::detect_launch(&std::getenv, ::getppid());
  if (!launch) {
    report.advice = launch.error().message();
  } else if (*launch) {
    const ranks::Launch& l = **launch;
    report.launcher = fmt::format("{}: rank {} of {}, {} of them on this machine", l.source, l.rank, l.ranks,
                                  l.local_ranks);
    report.advice = why_no_mpi(l);
  }
  return report;
}

std::vector<std::pair<std::string, std::string>> ranks_rows(const RanksReport& ranks) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"launcher", ranks.launcher.empty() ? "none started this process" : ranks.launcher}};
  for (const RanksReport::Library& mpi : ranks.mpi)
    rows.emplace_back(rows.size() == 1 ? "MPI" : "", fmt::format("{} ({})", mpi.version, mpi.path));
  if (ranks.mpi.empty())
    rows.emplace_back("MPI", "not installed; ranks of several machines need it, but for cards with NCCL");
  rows.emplace_back("NCCL", ranks.nccl.path.empty()
                                ? ranks.no_nccl + "; ranks on cards exchange through their hosts without it"
                                : fmt::format("{} ({})", ranks.nccl.version, ranks.nccl.path));
  return rows;
}

io::Tree ranks_json(const RanksReport& ranks) {
  io::Tree mpi = io::Tree::list();
  for (const RanksReport::Library& m : ranks.mpi)
    mpi.items.push_back(io::Tree::map({{"library", json_text(m.path)}, {"version", json_text(m.version)}}));
  io::Tree nccl;
  if (!ranks.nccl.path.empty())
    nccl =
        io::Tree::map({{"library", json_text(ranks.nccl.path)}, {"version", json_text(ranks.nccl.version)}});
  return io::Tree::map({{"launcher", ranks.launcher.empty() ? io::Tree{} : json_text(ranks.launcher)},
                        {"mpi", std::move(mpi)},
                        {"nccl", std::move(nccl)}});
}

}  // namespace plimsoll::cli
