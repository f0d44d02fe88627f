// The report's page: one HTML file without references, with the library that draws in it.
#pragma once

#include <span>
#include <string>

#include "reports/reported_run.h"

namespace plimsoll::reports {

/// Steps are downsampled to what a screen shows; a page of one run of 100,000 steps has less than 1 MB.
std::string report_page(std::span<const ReportedRun> runs);

// Parts of it.

/// What curves and timelines are drawn from: {"runs": […], "timelines": […]}, for a script element.
std::string page_data(std::span<const ReportedRun> runs);
/// Whether some curve has fewer points than there are steps.
bool is_downsampled(std::span<const ReportedRun> runs);

std::string overview_section(std::span<const ReportedRun> runs);
std::string memory_section(const ReportedRun& run, size_t index);
std::string techniques_section(const ReportedRun& run);
std::string time_section(const ReportedRun& run);
std::string settings_section(std::span<const ReportedRun> runs);
std::string environment_section(std::span<const ReportedRun> runs);
std::string predictions_section(const ReportedRun& run);
std::string evaluations_section(const ReportedRun& run);
std::string checkpoints_section(const ReportedRun& run);
std::string notes_section(const ReportedRun& run);

/// A member of an event as a number; NaN where there is none. `path`: "device.arena_bytes".
double member(const io::Tree& event, std::string_view path);

}  // namespace plimsoll::reports
