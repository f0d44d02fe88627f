// Maps the Trainer's settings for saving, evaluating and logging.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "importing/settle.h"

namespace plimsoll::importing {
namespace {

/// "no", which readers of YAML 1.1 turn into false.
std::string word_of(const SourceKey* key, const std::string& otherwise) {
  if (key == nullptr) return otherwise;
  if (key->value.kind == io::Tree::Kind::kBool && !key->value.boolean) return "no";
  return key->value.text;
}

/// A count of steps, or a share of them where the run's are known.
struct Interval {
  const SourceKey* key;
  std::string setting;
};

void map_interval(Draft& draft, const Interval& at) {
  const auto number = number_in(at.key->value);
  if (!number) return draft.wrong(*at.key, "a number of steps");
  if (*number <= 0 || *number >= 1)
    return draft.map(*at.key, at.setting,
                     io::Tree::of(static_cast<int64_t>(std::max(0.0, std::min(*number, 1e12)))));
  const Line* steps = draft.line("training.max_steps");
  if (steps == nullptr || number_in(steps->value).value_or(0) <= 0)
    return draft.no_equal(*at.key, "a share of the steps needs max_steps: set " + at.setting, at.setting);
  draft.map(*at.key, at.setting,
            io::Tree::of(static_cast<int64_t>(std::ceil(*number * *number_in(steps->value)))),
            "a share of max_steps");
}

void settle_saves(Draft& draft, Dialect dialect) {
  const SourceKey* strategy = draft.find(dialect, "save_strategy");
  const SourceKey* steps = draft.find(dialect, "save_steps");
  const bool is_axolotl = dialect == Dialect::kAxolotl;
  const std::string word = word_of(strategy, is_axolotl && steps == nullptr ? "epoch" : "steps");
  if (word == "no") {
    draft.map(*strategy, "output.save_strategy", io::Tree::of(std::string("no")));
    if (steps != nullptr) draft.harmless(*steps, "save_strategy is no");
  } else if (word == "steps") {
    if (strategy != nullptr) draft.map(*strategy, "output.save_strategy", io::Tree::of(std::string("steps")));
    if (steps != nullptr) return map_interval(draft, {steps, "output.save_steps"});
    draft.set_default("output.save_steps", "500", "transformers' default");
  } else if (word == "epoch" || word == "best") {
    if (strategy == nullptr)
      draft.set_default("output.save_strategy", "epoch", "axolotl's default");
    else if (word == "epoch")
      draft.map(*strategy, "output.save_strategy", io::Tree::of(word));
    else
      draft.no_equal(*strategy,
                     "set output.save_strategy and training.load_best_model_at_end: final/ is the best",
                     "output.save_strategy");
    if (steps != nullptr) draft.harmless(*steps, "save_strategy is " + word);
  } else {
    draft.wrong(*strategy, "no, steps, epoch or best");
  }
}

void settle_evaluation(Draft& draft, Dialect dialect) {
  const SourceKey* strategy = draft.find(dialect, "eval_strategy");
  if (strategy == nullptr) strategy = draft.find(dialect, "evaluation_strategy");
  const SourceKey* steps = draft.find(dialect, "eval_steps");
  const bool is_axolotl = dialect == Dialect::kAxolotl;
  const std::string word = word_of(strategy, is_axolotl && steps != nullptr ? "steps" : "no");
  if (word == "no") {
    if (strategy != nullptr)
      draft.map(*strategy, "training.eval_strategy", io::Tree::of(std::string("no")));
    else if (!is_axolotl)
      draft.set_default("training.eval_strategy", "no", "transformers' default");
    if (steps != nullptr) draft.harmless(*steps, "eval_strategy is no");
  } else if (word == "steps") {
    if (strategy != nullptr)
      draft.map(*strategy, "training.eval_strategy", io::Tree::of(std::string("steps")));
    if (steps != nullptr) return map_interval(draft, {steps, "training.eval_steps"});
    const Line* logging = draft.line("training.logging_steps");
    const std::string usual = logging != nullptr         ? io::to_yaml_flow(logging->value)
                              : dialect == Dialect::kTrl ? "10"
                                                         : "500";
    draft.set_default("training.eval_steps", usual, "as logging_steps, transformers' default");
  } else if (word == "epoch") {
    draft.map(*strategy, "training.eval_strategy", io::Tree::of(word));
    if (steps != nullptr) draft.harmless(*steps, "eval_strategy is epoch");
  } else {
    draft.wrong(*strategy, "no, steps or epoch");
  }
}

/// Event files of TensorBoard are written here too; other services are not known.
void settle_reports(Draft& draft, Dialect dialect) {
  const SourceKey* key = draft.find(dialect, "report_to");
  if (key == nullptr) return;
  std::vector<std::string> others;
  bool has_events = false;
  const bool is_list = key->value.kind == io::Tree::Kind::kList;
  for (const io::Tree& item : is_list ? key->value.items : std::vector{key->value}) {
    if (item.text == "tensorboard" || item.text == "all") has_events = true;
    if (item.text != "tensorboard" && item.text != "none" && !item.text.empty()) others.push_back(item.text);
  }
  const std::string note =
      fmt::format("{}: docs/run-folder.md has how to send events.jsonl there", fmt::join(others, ", "));
  if (has_events)
    return draft.map(*key, "training.report_to", word("tensorboard"), others.empty() ? "" : note);
  if (others.empty()) return draft.harmless(*key, "no other tracker is supported");
  draft.no_equal(*key, note + "; training is the same", "training.report_to");
}

}  // namespace

void settle_saving(Draft& draft, Dialect dialect) {
  settle_reports(draft, dialect);
  if (const SourceKey* logging = draft.find(dialect, "logging_steps"))
    map_interval(draft, {logging, "training.logging_steps"});
  settle_saves(draft, dialect);
  settle_evaluation(draft, dialect);
}

}  // namespace plimsoll::importing
