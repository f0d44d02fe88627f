// Memory, techniques, time, settings, environment: the tables below the curves.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "base/units.h"
#include "reports/html.h"
#include "reports/page.h"

namespace plimsoll::reports {
namespace {

constexpr size_t kMostRows = 25;

/// A bar behind a share of the whole, 0 to 1.
std::string share_cell(double share) {
  return fmt::format("<span class=\"bar\"><i style=\"width:{:.1f}%\"></i></span>{:.1f} %",
                     100 * std::clamp(share, 0.0, 1.0), 100 * share);
}

std::string milliseconds(double seconds) { return fmt::format("{:.4g}", 1e3 * seconds); }

std::string bytes_text(int64_t bytes) {
  return bytes < 0 ? "-" + to_string(Bytes(-bytes)) : to_string(Bytes(bytes));
}

/// "optimizer_state" as people write it.
std::string spaced(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

struct OpRow {
  std::string op, layer;
  double seconds = 0, flops = 0, bytes = 0;
};

std::vector<OpRow> op_rows(const io::Tree& ops) {
  std::vector<OpRow> rows;
  const auto text = [](const io::Tree& row, const char* key) {
    const io::Tree* value = row.find(key);
    return value != nullptr && value->kind == io::Tree::Kind::kString ? value->text : "";
  };
  for (const io::Tree& row : ops.items) {
    const double seconds = member(row, "seconds"), flops = member(row, "flops"), bytes = member(row, "bytes");
    if (std::isfinite(seconds) && seconds > 0)
      rows.push_back({text(row, "op"), text(row, "layer"), seconds, flops, bytes});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const OpRow& a, const OpRow& b) { return a.seconds > b.seconds; });
  return rows;
}

std::string ops_table(const std::vector<OpRow>& rows) {
  double all = 0;
  for (const OpRow& row : rows) all += row.seconds;
  HtmlTable table({"op", "layer", "ms a step", "share", "GFLOP/s", "GB/s"}, 2);
  double rest = all;
  for (size_t i = 0; i < std::min(kMostRows, rows.size()); ++i) {
    const OpRow& row = rows[i];
    const auto rate = [&](double amount) {
      return std::isfinite(amount) ? fmt::format("{:.4g}", 1e-9 * amount / row.seconds) : "–";
    };
    table.add({html_text(row.op), html_text(row.layer), milliseconds(row.seconds),
               share_cell(row.seconds / all), rate(row.flops), rate(row.bytes)});
    rest -= row.seconds;
  }
  if (rows.size() > kMostRows)
    table.add({fmt::format("{} rows more", rows.size() - kMostRows), "", milliseconds(rest),
               share_cell(rest / all), "", ""});
  return "<p>From the profile in the folder (ops.json), means of a step.</p>\n" + table.text();
}

/// The profile's verdict: where a step goes and what would help, and what of it was put to use.
std::string diagnosis_table(const io::Tree& verdict) {
  const io::Tree* findings = verdict.find("findings");
  if (findings == nullptr || findings->items.empty()) return "";
  HtmlTable table({"where a step goes", "ms a step", "share", "what would help"}, 1);
  for (size_t i = 0; i < std::min(kMostRows, findings->items.size()); ++i) {
    const io::Tree& finding = findings->items[i];
    const io::Tree *what = finding.find("what"), *hint = finding.find("hint");
    const double seconds = member(finding, "seconds"), share = member(finding, "share");
    if (what == nullptr || hint == nullptr || !std::isfinite(seconds) || !std::isfinite(share)) continue;
    table.add({html_text(what->text), milliseconds(seconds), share_cell(share), html_text(hint->text)});
  }
  std::string used;
  for (const auto& [key, text] :
       {std::pair("utilisation", "of the threads' time computes"),
        std::pair("necessary", "of a step goes to necessary operations"),
        std::pair("mfu", "of the machine's best rate goes into the model's operations (MFU)")})
    if (const double share = member(verdict, key); std::isfinite(share))
      used += fmt::format("{}{:.1f} % {}", used.empty() ? "" : ", ", 100 * share, text);
  return "<p>The profile's verdict (verdict.json).</p>\n" + table.text("verdict") +
         (used.empty() ? "" : "<p>" + used + ".</p>\n");
}

std::string parts_table(const RunEvents& events, bool has_profile) {
  double seconds = 0, wait = 0, saving = 0;
  int64_t steps = 0;
  for (const StepRow& row : events.steps) {
    if (!std::isfinite(row[Figure::kStepSeconds])) continue;
    seconds += row[Figure::kStepSeconds], ++steps;
    if (std::isfinite(row[Figure::kDataWait])) wait += row[Figure::kDataWait];
  }
  for (const CheckpointRow& row : events.checkpoints)
    if (std::isfinite(row.seconds)) saving += row.seconds;
  if (steps == 0 || !(seconds > 0)) return "";
  const auto each = [&](double part) { return milliseconds(part / static_cast<double>(steps)); };
  HtmlTable table({"of the steps' time", "ms a step", "share"});
  table.add({"computing", each(seconds - wait), share_cell(1 - wait / seconds)});
  table.add({"waiting for data", each(wait), share_cell(wait / seconds)});
  const char* hint = has_profile ? ""
                                 : " The events have no times of single ops: <code>plimsoll profile RUN.yaml "
                                   "--output DIR/profile</code> adds them.";
  return "<p>From the events of the run's own steps.</p>\n" + table.text() +
         fmt::format("<p>Checkpoints took {:.3g} s to write, mostly during other steps.{}</p>\n", saving,
                     hint);
}

std::string bytes_of_plan(const io::Tree& plan) {
  const io::Tree* classes = plan.find("classes");
  if (classes == nullptr) return "";
  std::vector<std::pair<double, std::string>> rows;
  double all = 0;
  for (const auto& [name, value] : classes->members) {
    if (value.kind != io::Tree::Kind::kInteger || value.integer <= 0) continue;
    rows.emplace_back(static_cast<double>(value.integer), name);
    all += rows.back().first;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  HtmlTable table({"class", "bytes", "share"});
  for (const auto& [bytes, name] : rows)
    table.add({html_text(spaced(name)), grouped(static_cast<int64_t>(std::min(bytes, 9e18))),
               share_cell(bytes / all)});
  return table.empty() ? "" : "<p>States and arena of the plan, by class:</p>\n" + table.text();
}

std::string settings_text(const strategy::SettingTexts& settings) {
  std::string out;
  for (const auto& [path, value] : settings) out += (out.empty() ? "" : " ") + path + "=" + value;
  return out;
}

const SettingRow* find(const ReportedRun& run, const std::string& path) {
  const auto at = std::find_if(run.settings.begin(), run.settings.end(),
                               [&](const SettingRow& row) { return row.path == path; });
  return at == run.settings.end() ? nullptr : &*at;
}

/// Bytes as people write them, other numbers without digits that nobody measured.
std::string environment_text(const std::string& key, const io::Tree& value) {
  if (value.kind == io::Tree::Kind::kInteger && key.ends_with("_bytes")) return bytes_text(value.integer);
  return value.kind == io::Tree::Kind::kNumber ? fmt::format("{:.4g}", value.number) : value.text;
}

/// A run's own folder differs always and says nothing.
bool is_worth_telling(const SettingRow& row) { return row.path != "output.dir"; }

}  // namespace

std::string memory_section(const ReportedRun& run, size_t index) {
  std::string out = bytes_of_plan(run.events.plan);
  if (run.plan && !run.plan->timeline.points.empty()) {
    const planner::TimelinePoint& peak = run.plan->timeline.at_peak();
    out = fmt::format(
              "<div class=\"chart tall\" id=\"timeline{}\"></div>\n<p>Bytes alive while <code>{}</code> "
              "runs, op by op{}. State and arena peak with {} bytes at op {}, in {}.</p>\n",
              index, html_text(run.plan->timeline.program),
              run.plan->kept ? "" : ": the run planned again from its run.yaml", grouped(peak.total_bytes),
              peak.position, html_text(std::string(planner::name(peak.phase)))) +
          out;
    const double planned =
        member(run.events.plan, "device.persistent_bytes") + member(run.events.plan, "device.arena_bytes");
    if (std::isfinite(planned) && planned != static_cast<double>(peak.total_bytes))
      out += fmt::format(
          "<p>The run's own plan had {:.0f} bytes: it was made by another version, for another machine, or "
          "with another choice.</p>\n",
          planned);
  }
  return out.empty() ? "" : "<h3>Memory</h3>\n" + out;
}

std::string techniques_section(const ReportedRun& run) {
  if (!run.plan) return "";
  const std::string title = "<h3>Techniques</h3>\n";
  if (run.plan->techniques.empty())
    return title +
           "<p>What each technique would save and cost is some thirty plans, which take a while for this "
           "model: "
           "<code>plimsoll report --techniques</code> makes them, and so does "
           "<code>plimsoll plan RUN.yaml --explain memory</code>.</p>\n";
  HtmlTable table({"technique", "peak", "saves", "step", "settings and effect"}, 1);
  for (const analysis::TechniqueRow& row : run.plan->techniques) {
    if (row.peak_bytes == 0) continue;
    table.add({html_text(row.name), bytes_text(row.peak_bytes), bytes_text(row.saved_bytes),
               milliseconds(row.seconds) + " ms",
               "<code>" + html_text(settings_text(row.settings)) + "</code> " + html_text(row.note)},
              row.saved_bytes > 0 ? "good" : "");
  }
  return title + "<p>Each planned over this run's settings; times are estimates.</p>\n" +
         table.text("techniques");
}

std::string time_section(const ReportedRun& run) {
  const auto rows = op_rows(run.ops);
  const std::string out = diagnosis_table(run.verdict) + (rows.empty() ? "" : ops_table(rows)) +
                          parts_table(run.events, !rows.empty());
  return out.empty() ? "" : "<h3>Where the time goes</h3>\n" + out;
}

std::string settings_section(std::span<const ReportedRun> runs) {
  std::vector<std::string> titles = {"setting", "default"};
  for (const ReportedRun& run : runs) titles.push_back(html_text(run.name));
  HtmlTable differing(titles, titles.size()), changed(titles, titles.size());
  const auto longest = std::max_element(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return a.settings.size() < b.settings.size();
  });
  for (const SettingRow& row : longest->settings) {
    bool differs = false, is_usual = true;
    std::vector<std::string> cells = {"<code>" + html_text(row.path) + "</code>", html_text(row.usual)};
    for (const ReportedRun& run : runs) {
      const SettingRow* of_run = find(run, row.path);
      cells.push_back(of_run == nullptr ? "–" : html_text(of_run->value));
      differs |= of_run != nullptr && of_run->value != row.value;
      is_usual &= of_run == nullptr || of_run->value == row.usual;
    }
    if (!is_worth_telling(row)) continue;
    if (differs)
      differing.add(std::move(cells));
    else if (!is_usual)
      changed.add(std::move(cells));
  }
  std::string out;
  if (runs.size() > 1)
    out += differing.empty() ? "<p>The runs have the same settings.</p>\n"
                             : "<h3>Settings in which the runs differ</h3>\n" + differing.text("differing");
  if (!changed.empty())
    out += "<h3>Settings that differ from their defaults</h3>\n" + changed.text("changed");
  return out;
}

std::string environment_section(std::span<const ReportedRun> runs) {
  std::vector<std::string> titles = {""}, keys;
  for (const ReportedRun& run : runs) {
    titles.push_back(html_text(run.name));
    for (const auto& [key, value] : run.environment.members)
      if (std::find(keys.begin(), keys.end(), key) == keys.end() && keys.size() < 40) keys.push_back(key);
  }
  HtmlTable table(titles, titles.size());
  for (const std::string& key : keys) {
    std::vector<std::string> cells = {html_text(key)};
    for (const ReportedRun& run : runs) {
      const io::Tree* value = run.environment.find(key);
      cells.push_back(value == nullptr || !value->is_scalar() || value->text.empty()
                          ? "–"
                          : html_text(environment_text(key, *value)));
    }
    table.add(std::move(cells));
  }
  return table.empty() ? "" : "<h2>Environment</h2>\n" + table.text("environment");
}

}  // namespace plimsoll::reports
