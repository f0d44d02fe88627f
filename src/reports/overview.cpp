// The overview table of a report: the tables at the page's head.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/duration.h"
#include "base/numbers.h"
#include "base/units.h"
#include "reports/html.h"
#include "reports/page.h"

namespace plimsoll::reports {
namespace {

const double kNone = std::nan("");

/// The cell's text for people, its value for programs.
std::string cell(std::string_view figure, double value, const std::string& text) {
  if (!std::isfinite(value)) return "–";
  return fmt::format("<span data-figure=\"{}\" data-value=\"{}\">{}</span>", figure, script_number(value),
                     html_text(text));
}

std::string loss_text(double loss) { return fmt::format("{:.6g}", loss); }
std::string bytes_text(double bytes) {
  if (!(bytes >= 0 && bytes < 9e18)) return "–";
  return to_string(Bytes(static_cast<int64_t>(bytes)));
}

double sum(const RunEvents& events, Figure figure) {
  double total = 0;
  for (const StepRow& row : events.steps)
    if (std::isfinite(row[figure])) total += row[figure];
  return total;
}

/// The row with the least loss; null where none has one.
template <typename Row, typename Loss>
const Row* lowest(const std::vector<Row>& rows, Loss loss) {
  const Row* best = nullptr;
  for (const Row& row : rows)
    if (std::isfinite(loss(row)) && (best == nullptr || loss(row) < loss(*best))) best = &row;
  return best;
}

std::string at_step(std::string_view figure, double value, int64_t step) {
  return cell(figure, value, fmt::format("{} at step {}", loss_text(value), grouped(step)));
}

std::string last_loss(const RunEvents& events) {
  for (auto row = events.steps.rbegin(); row != events.steps.rend(); ++row)
    if (std::isfinite((*row)[Figure::kLoss])) return at_step("last_loss", (*row)[Figure::kLoss], row->step);
  return "–";
}

std::string lowest_loss(const RunEvents& events) {
  const StepRow* row = lowest(events.steps, [](const StepRow& r) { return r[Figure::kLoss]; });
  return row == nullptr ? "–" : at_step("lowest_loss", (*row)[Figure::kLoss], row->step);
}

std::string eval_loss(const RunEvents& events, bool last) {
  std::vector<EvalRow> whole;
  for (const EvalRow& row : events.evals)
    if (row.name.empty() && std::isfinite(row.loss)) whole.push_back(row);
  if (whole.empty()) return "–";
  const EvalRow* row = last ? &whole.back() : lowest(whole, [](const EvalRow& r) { return r.loss; });
  return at_step(last ? "last_eval_loss" : "best_eval_loss", row->loss, row->step);
}

std::string speed(const RunEvents& events) {
  double rate = member(events.summary, events.unit + "_per_second");
  if (const double seconds = sum(events, Figure::kStepSeconds); !std::isfinite(rate) && seconds > 0)
    rate = sum(events, Figure::kUnits) / seconds;
  return cell("tokens_per_second", rate, fmt::format("{:.{}f}", rate, rate < 1000 ? 2 : 0));
}

std::string wait_share(const RunEvents& events) {
  const double seconds = sum(events, Figure::kStepSeconds), wait = sum(events, Figure::kDataWait);
  return seconds > 0 ? cell("data_wait_share", wait / seconds, fmt::format("{:.2f} %", 100 * wait / seconds))
                     : "–";
}

std::string counted_cell(std::string_view figure, int64_t count) {
  return cell(figure, static_cast<double>(count), grouped(count));
}

std::string peak(const RunEvents& events, bool measured) {
  const char* key = measured ? "measured_peak_bytes" : "planned_peak_bytes";
  double bytes = member(events.summary, key);
  if (!measured && !std::isfinite(bytes)) bytes = member(events.plan, "process_peak_bytes");
  return cell(key, bytes, bytes_text(bytes));
}

std::string seconds_cell(const RunEvents& events) {
  double seconds = member(events.summary, "seconds");
  if (!std::isfinite(seconds)) seconds = sum(events, Figure::kStepSeconds);
  return cell("seconds", seconds, seconds < 60 ? fmt::format("{:.3g} s", seconds) : duration_text(seconds));
}

/// The plan's operations at the run's rate, of those that the machine gives at best.
std::string mfu_cell(const ReportedRun& run) {
  const double best = member(run.environment, "best_flops"), flops = member(run.events.plan, "step.flops");
  double seconds = 0, steps = 0;
  for (const StepRow& row : run.events.steps)
    if (std::isfinite(row[Figure::kStepSeconds])) {
      seconds += row[Figure::kStepSeconds];
      steps += 1;
    }
  if (!(best > 0) || seconds <= 0) return "–";
  const double mfu = steps * flops / (seconds * best);
  return cell("mfu", mfu, fmt::format("{:.1f} %", 100 * mfu));
}

using Cell = std::function<std::string(const RunEvents&)>;
struct Line {
  std::string title;
  Cell cell;
};

/// `unit`: what the runs count.
std::vector<Line> lines(const std::string& unit) {
  return {{"state",
           [](const RunEvents& e) {
             return std::string(e.summary.is_null() ? "no summary: the run is going on, or was stopped"
                                                    : "ended");
           }},
          {"last step",
           [](const RunEvents& e) {
             return e.steps.empty() ? std::string("–") : counted_cell("last_step", e.steps.back().step);
           }},
          {unit,
           [](const RunEvents& e) {
             const double units = member(e.summary, "run_" + e.unit);
             return counted_cell(
                 "tokens", static_cast<int64_t>(
                               std::clamp(std::isfinite(units) ? units : sum(e, Figure::kUnits), 0.0, 9e18)));
           }},
          {"last loss", last_loss},
          {"lowest loss", lowest_loss},
          {"last evaluation's loss", [](const RunEvents& e) { return eval_loss(e, true); }},
          {"best evaluation's loss", [](const RunEvents& e) { return eval_loss(e, false); }},
          {unit + " a second", speed},
          {"waiting for data", wait_share},
          {"time of the last process", seconds_cell},
          {"planned peak memory", [](const RunEvents& e) { return peak(e, false); }},
          {"measured peak memory", [](const RunEvents& e) { return peak(e, true); }}};
}

}  // namespace

double member(const io::Tree& event, std::string_view path) {
  const io::Tree* at = &event;
  while (at != nullptr && !path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    at = at->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  if (at == nullptr || (at->kind != io::Tree::Kind::kInteger && at->kind != io::Tree::Kind::kNumber))
    return kNone;
  return at->number;
}

std::string overview_section(std::span<const ReportedRun> runs) {
  std::vector<std::string> titles = {""};
  for (const ReportedRun& run : runs) titles.push_back(html_text(run.name));
  HtmlTable table(titles);
  for (const Line& line : lines(runs.empty() ? "tokens" : runs.front().events.unit)) {
    std::vector<std::string> cells = {line.title};
    for (const ReportedRun& run : runs) cells.push_back(line.cell(run.events));
    table.add(std::move(cells));
  }
  std::vector<std::string> mfu = {"model FLOP utilization (MFU)"};
  for (const ReportedRun& run : runs) mfu.push_back(mfu_cell(run));
  table.add(std::move(mfu));
  return table.text("overview");
}

std::string evaluations_section(const ReportedRun& run) {
  constexpr size_t kMostRows = 200;
  const auto& evals = run.events.evals;
  if (evals.empty()) return "";
  HtmlTable table({"step", "set", "loss", "machine"}, 2);
  const size_t first = evals.size() > kMostRows ? evals.size() - kMostRows : 0;
  for (size_t i = first; i < evals.size(); ++i) {
    std::string more;
    for (const auto& [name, value] : evals[i].metrics)
      more += (more.empty() ? "" : ", ") + html_text(name) + fmt::format(" {:.6g}", value);
    table.add({grouped(evals[i].step), html_text(evals[i].name),
               cell("eval_loss", evals[i].loss, loss_text(evals[i].loss)), more});
  }
  return "<h3>Evaluations</h3>\n" +
         (first > 0 ? fmt::format("<p>The last {} of {}.</p>\n", kMostRows, evals.size()) : "") +
         table.text();
}

std::string checkpoints_section(const ReportedRun& run) {
  constexpr size_t kMostRows = 100;
  const auto& list = run.events.checkpoints;
  if (list.empty()) return "";
  HtmlTable table({"step", "folder", "seconds"}, 2);
  const size_t first = list.size() > kMostRows ? list.size() - kMostRows : 0;
  for (size_t i = first; i < list.size(); ++i)
    table.add({grouped(list[i].step), html_text(list[i].path),
               std::isfinite(list[i].seconds) ? fmt::format("{:.3g}", list[i].seconds) : "–"});
  return "<h3>Checkpoints</h3>\n<p>All that were written, including those that save_total_limit "
         "removed.</p>\n" +
         (first > 0 ? fmt::format("<p>The last {} of {}.</p>\n", kMostRows, list.size()) : "") + table.text();
}

std::string notes_section(const ReportedRun& run) {
  std::vector<std::string> notes = run.notes;
  const RunEvents& e = run.events;
  if (e.bad_lines > 0)
    notes.push_back(fmt::format("{} lines of events.jsonl are not events and were skipped", e.bad_lines));
  if (e.repeated > 0)
    notes.push_back(fmt::format("{} steps were reported more than once: the last counts", e.repeated));
  if (e.not_finite > 0)
    notes.push_back(fmt::format("the loss of {} steps is no finite number: gaps in the curve", e.not_finite));
  std::string out;
  for (const std::string& note : notes) out += "<li>" + html_text(note) + "</li>\n";
  for (const std::string& warning : e.warnings) out += "<li>warning: " + html_text(warning) + "</li>\n";
  return out.empty() ? "" : "<h3>Notes</h3>\n<ul>\n" + out + "</ul>\n";
}

}  // namespace plimsoll::reports
