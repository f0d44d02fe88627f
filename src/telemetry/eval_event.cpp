#include "telemetry/eval_event.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll::telemetry {
namespace {

constexpr size_t kMostPairs = 20;

io::Tree finite(double value) { return std::isfinite(value) ? io::Tree::of(value) : io::Tree{}; }
io::Tree count(uint32_t value) { return io::Tree::of(static_cast<int64_t>(value)); }

/// {"labels": […], "counts": [[…], …]}
io::Tree matrix(const metrics::Confusion& confusion) {
  const size_t classes = confusion.names.size();
  std::vector<io::Tree> names, rows;
  for (size_t label = 0; label < classes; ++label) {
    names.push_back(io::Tree::of(confusion.names[label]));
    std::vector<io::Tree> row;
    for (size_t predicted = 0; predicted < classes; ++predicted)
      row.push_back(count(confusion.at(label, predicted)));
    rows.push_back(io::Tree::list(std::move(row)));
  }
  return io::Tree::map(
      {{"labels", io::Tree::list(std::move(names))}, {"counts", io::Tree::list(std::move(rows))}});
}

io::Tree pairs(const metrics::Confusion& confusion) {
  std::vector<io::Tree> list;
  for (const metrics::Confusion::Pair& pair : confusion.most_confused(kMostPairs))
    list.push_back(io::Tree::map({{"label", io::Tree::of(confusion.names[pair.label])},
                                  {"predicted", io::Tree::of(confusion.names[pair.predicted])},
                                  {"count", count(pair.count)}}));
  return io::Tree::list(std::move(list));
}

io::Tree examples(const std::vector<training::EvalExample>& shown) {
  std::vector<io::Tree> list;
  for (const training::EvalExample& example : shown)
    list.push_back(io::Tree::map({{"name", io::Tree::of(example.name)},
                                  {"label", io::Tree::of(example.label)},
                                  {"predicted", io::Tree::of(example.predicted)},
                                  {"score", finite(example.score)}}));
  return io::Tree::list(std::move(list));
}

void set_figures(io::Tree& event, const training::EvalEvent& e) {
  event.set("loss", io::Tree::of(e.loss));
  if (e.has_perplexity) event.set("perplexity", io::Tree::of(std::exp(e.loss)));
  event.set(std::string(e.unit), io::Tree::of(e.units));
  event.set("targets", io::Tree::of(e.targets));
  if (!e.metrics.empty()) {
    io::Tree metrics = io::Tree::map();
    for (const metrics::Value& m : e.metrics) metrics.set(m.name, finite(m.value));
    event.set("metrics", std::move(metrics));
  }
  if (e.confusion.empty()) return;
  if (e.confusion.names.size() <= kMostClassesInEvents)
    event.set("confusion_matrix", matrix(e.confusion));
  else
    event.set("most_confused", pairs(e.confusion));
}

}  // namespace

io::Tree eval_event(const training::EvalEvent& e) {
  io::Tree event = io::Tree::map({{"event", io::Tree::of(std::string("eval"))}});
  if (!e.name.empty()) event.set("name", io::Tree::of(e.name));
  event.set("step", io::Tree::of(e.step));
  set_figures(event, e);
  if (!e.examples.empty()) event.set("examples", examples(e.examples));
  if (e.parts.empty()) return event;
  io::Tree sources = io::Tree::map();
  for (const training::EvalEvent& part : e.parts) {
    io::Tree figures = io::Tree::map();
    set_figures(figures, part);
    sources.set(part.name, std::move(figures));
  }
  event.set("sources", std::move(sources));
  return event;
}

}  // namespace plimsoll::telemetry
