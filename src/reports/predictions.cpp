// The page's part on a classifier's last evaluation: the confusion matrix, and images with their answers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/numbers.h"
#include "metrics/confusion.h"
#include "reports/html.h"
#include "reports/page.h"

namespace plimsoll::reports {
namespace {

constexpr size_t kMostColumns = 30, kMostPairs = 20;

/// A matrix of at most 256 classes with a count for each pair; nothing for anything else.
std::optional<metrics::Confusion> confusion_of(const io::Tree& eval) {
  const io::Tree* matrix = eval.find("confusion_matrix");
  const io::Tree *labels = matrix == nullptr ? nullptr : matrix->find("labels"),
                 *rows = matrix == nullptr ? nullptr : matrix->find("counts");
  if (labels == nullptr || rows == nullptr || labels->items.empty() || labels->items.size() > 256) return {};
  metrics::Confusion confusion;
  for (const io::Tree& label : labels->items) confusion.names.push_back(label.text);
  const size_t classes = confusion.names.size();
  if (rows->items.size() != classes) return {};
  for (const io::Tree& row : rows->items) {
    if (row.items.size() != classes) return {};
    for (const io::Tree& count : row.items) {
      if (count.kind != io::Tree::Kind::kInteger || count.integer < 0 || count.integer > UINT32_MAX)
        return {};
      confusion.counts.push_back(static_cast<uint32_t>(count.integer));
    }
  }
  return confusion;
}

/// Counts over the shade of their share of the class.
std::string matrix_table(const metrics::Confusion& confusion) {
  std::vector<std::string> titles = {"class"};
  for (const std::string& name : confusion.names) titles.push_back(html_text(name));
  titles.emplace_back("right");
  HtmlTable table(titles, 1);
  for (size_t label = 0; label < confusion.names.size(); ++label) {
    double all = 0;
    for (size_t p = 0; p < confusion.names.size(); ++p) all += confusion.at(label, p);
    std::vector<std::string> cells = {html_text(confusion.names[label])};
    for (size_t p = 0; p < confusion.names.size(); ++p) {
      const uint32_t count = confusion.at(label, p);
      cells.push_back(count == 0 ? "·"
                                 : fmt::format("<span class=\"shade{}\" style=\"--share:{:.3f}\">{}</span>",
                                               p == label ? " right" : "", count / all, grouped(count)));
    }
    cells.push_back(all == 0 ? "–" : fmt::format("{:.1f} %", 100 * confusion.at(label, label) / all));
    table.add(std::move(cells));
  }
  return "<p>Examples by class (rows) and predicted class (columns).</p>\n" + table.text("confusion");
}

std::string pairs_table(const io::Tree& eval, const std::optional<metrics::Confusion>& confusion) {
  HtmlTable table({"class", "taken for", "examples"}, 2);
  if (confusion) {
    for (const metrics::Confusion::Pair& pair : confusion->most_confused(kMostPairs))
      table.add({html_text(confusion->names[pair.label]), html_text(confusion->names[pair.predicted]),
                 grouped(pair.count)});
  } else if (const io::Tree* told = eval.find("most_confused"); told != nullptr) {
    for (size_t i = 0; i < std::min(kMostPairs, told->items.size()); ++i) {
      const io::Tree *label = told->items[i].find("label"), *predicted = told->items[i].find("predicted");
      const double count = member(told->items[i], "count");
      if (label != nullptr && predicted != nullptr && count >= 0 && count < 9e18)
        table.add({html_text(label->text), html_text(predicted->text), grouped(static_cast<int64_t>(count))});
    }
  }
  return table.empty() ? ""
                       : "<p>Classes that were most often taken for others.</p>\n" + table.text("confusion");
}

std::string picture_card(const ReportedPicture& picture) {
  const bool is_right = picture.label == picture.predicted;
  const std::string image = picture.png.empty()
                                ? "<span class=\"none\">no file</span>"
                                : "<img alt=\"\" src=\"data:image/png;base64," + base64(picture.png) + "\">";
  const std::string score =
      std::isfinite(picture.score) ? fmt::format(" {:.1f} %", 100 * picture.score) : std::string();
  const std::string answer = is_right
                                 ? html_text(picture.label)
                                 : html_text(picture.label) + " taken for " + html_text(picture.predicted);
  return fmt::format("<figure class=\"{}\" title=\"{}\">{}<figcaption>{}{}</figcaption></figure>\n",
                     is_right ? "right" : "wrong", html_text(picture.name), image, answer, score);
}

}  // namespace

std::string predictions_section(const ReportedRun& run) {
  const io::Tree& eval = run.events.last_eval;
  const std::optional<metrics::Confusion> confusion = confusion_of(eval);
  std::string out = confusion && confusion->names.size() <= kMostColumns ? matrix_table(*confusion)
                                                                         : pairs_table(eval, confusion);
  if (!run.pictures.empty()) {
    out +=
        "<p>Mistakes that the model was surest of, then right answers that it was least sure of, each with "
        "the probability of the predicted class.</p>\n<div id=\"pictures\">\n";
    for (const ReportedPicture& picture : run.pictures) out += picture_card(picture);
    out += "</div>\n";
  }
  return out.empty() ? "" : "<h3>Answers of the last evaluation</h3>\n" + out;
}

}  // namespace plimsoll::reports
