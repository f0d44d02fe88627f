// plimsoll report: runs as one page to look at.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "io/check_writable.h"
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
  PLIMSOLL_TRY(io::check_writable(arguments.output));
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
      app, "report", "write an HTML page about runs: curves, memory, time, settings",
      [](Parser command, ReportArguments& arguments) {
        command.add_option("folders", arguments.folders, "output.dir of a run; several are compared")
            .type_name("DIR")
            .required();
        command.add_option("--output", arguments.output, "the page to write")
            .type_name("FILE.html")
            .show_default();
        command.add_flag("--techniques", arguments.techniques,
                         "plan what each technique would save, even if that takes long");
        command.add_flag("--no-plan", arguments.plan,
                         "leave out parts that need planning: memory over a step, techniques", false);
        command.footer(
            "examples: plimsoll report runs/one\n"
            "          plimsoll report runs/* --output compare.html\n\n"
            "The page needs no network. With a profile in the folder it shows the time of each op:\n"
            "  plimsoll profile runs/one/run.yaml --output runs/one/profile");
      },
      run_report);
}

}  // namespace plimsoll::cli
