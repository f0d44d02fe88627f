#include "reports/page.h"

#include <fmt/format.h>

#include "base/numbers.h"
#include "reports/assets.h"
#include "reports/html.h"

namespace plimsoll::reports {
namespace {

/// Nothing is loaded from anywhere, whatever a run's texts say.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

std::string head(const std::string& title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{}</style>\n"
      "<style>{}</style>\n</head>\n<body>\n",
      kPolicy, html_text(title), library_style(), page_style());
}

std::string curves(std::span<const ReportedRun> runs) {
  std::string out = "<h2>Curves</h2>\n<p class=\"quiet\">Drag to zoom, double click to go back.";
  if (is_downsampled(runs))
    out +=
        " <span id=\"downsampled\">The curves are downsampled: the steps are divided into several hundred "
        "equal parts, and the smallest and largest value of each is drawn, so that no spike is lost.</span>";
  return out +
         "</p>\n<div id=\"legend\"></div>\n<div id=\"curves\"></div>\n<noscript><p>The curves need "
         "JavaScript.</p></noscript>\n";
}

std::string run_sections(const ReportedRun& run, size_t index) {
  return memory_section(run, index) + techniques_section(run) + time_section(run) + predictions_section(run) +
         evaluations_section(run) + checkpoints_section(run) + notes_section(run);
}

}  // namespace

std::string report_page(std::span<const ReportedRun> runs) {
  const std::string title = runs.size() == 1 ? runs[0].name : fmt::format("{} runs", runs.size());
  std::string out = head(title + " – Plimsoll report");
  out +=
      "<header><h1>" + html_text(title) + "</h1></header>\n<main>\n" + overview_section(runs) + curves(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string sections = run_sections(runs[i], i);
    if (!sections.empty())
      out += fmt::format("<section><h2>{}</h2>\n{}</section>\n",
                         runs.size() == 1 ? "The run" : html_text(runs[i].name), sections);
  }
  if (const std::string settings = settings_section(runs); !settings.empty())
    out += "<h2>Settings</h2>\n" + settings;
  out += environment_section(runs);
  out += fmt::format(
      "</main>\n<footer><details><summary>Made by plimsoll {}; drawn with dygraphs (MIT licence)</summary>"
      "<pre>{}</pre></details></footer>\n",
      PLIMSOLL_VERSION, html_text(library_licence()));
  out += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n<script>", page_data(runs));
  out += library_script();
  out += "</script>\n<script>";
  out += page_script();
  return out + "</script>\n</body>\n</html>\n";
}

}  // namespace plimsoll::reports
