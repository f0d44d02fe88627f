// plimsoll report: runs as one page to look at.
#include <fmt/format.h>

#include "base/terminal.h"
#include "cli/commands.h"
#include "io/file.h"
#include "reports/page.h"

namespace plimsoll::cli {
namespace {

constexpr size_t kMostRuns = 32;

struct ReportArguments {
  std::vector<std::string> folders;
  std::string output = "report.html";
  bool techniques = false, plan = true;
};

Status run_report(const ReportArguments& arguments) {
  if (arguments.folders.size() > kMostRuns)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} runs on one page", arguments.folders.size()),
                 {},
                 fmt::format("compare at most {} at a time", kMostRuns)};
  const reports::Planning planning = !arguments.plan        ? reports::Planning::kNone
                                     : arguments.techniques ? reports::Planning::kAll
                                                            : reports::Planning::kQuick;
  std::vector<reports::ReportedRun> runs;
  for (const std::string& folder : arguments.folders) {
    PLIMSOLL_ASSIGN(reports::ReportedRun run, reports::read_run(folder, planning));
    runs.push_back(std::move(run));
  }
  const std::string page = reports::report_page(runs);
  PLIMSOLL_TRY(io::write_file_atomically(arguments.output, page));
  print_message(fmt::format("wrote {}", arguments.output));
  return Ok{};
}

}  // namespace

Command add_report(Parser app) {
  return add_command<ReportArguments>(
      app, "report", "runs as one HTML page: curves, memory, time, settings",
      [](Parser command, ReportArguments& arguments) {
        command
            .add_option("folders", arguments.folders,
                        "runs: their output.dir; several are laid over each other")
            .type_name("DIR")
            .required();
        command.add_option("--output", arguments.output, "the page").type_name("FILE.html").show_default();
        command.add_flag("--techniques", arguments.techniques,
                         "plan what each technique would save, however long that takes");
        command.add_flag("--no-plan", arguments.plan,
                         "leave out what has to be planned again: memory over a step, techniques", false);
        command.footer(
            "examples: plimsoll report runs/one\n"
            "          plimsoll report runs/* --output compare.html\n\n"
            "The page needs no network. With a profile in the folder it says which op takes how long:\n"
            "  plimsoll profile runs/one/run.yaml --output runs/one/profile");
      },
      run_report);
}

}  // namespace plimsoll::cli
