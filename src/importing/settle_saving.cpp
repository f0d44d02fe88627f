// What the Trainer saves, evaluates and logs, and when.
#include <fmt/format.h>

#include <cmath>

#include "importing/settle.h"

namespace plimsoll::importing {
namespace {

/// "no", which readers of YAML 1.1 turn into false.
std::string word_of(const SourceKey* key, const std::string& otherwise) {
  if (key == nullptr) return otherwise;
  if (key->value.kind == Tree::Kind::kBool && !key->value.boolean) return "no";
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
                     Tree::of(static_cast<int64_t>(std::max(0.0, std::min(*number, 1e12)))));
  const Line* steps = draft.line("training.max_steps");
  if (steps == nullptr || number_in(steps->value).value_or(0) <= 0)
    return draft.no_equal(*at.key, "a share of the steps needs max_steps: set " + at.setting, at.setting);
  draft.map(*at.key, at.setting,
            Tree::of(static_cast<int64_t>(std::ceil(*number * *number_in(steps->value)))),
            "a share of max_steps");
}

void settle_saves(Draft& draft, Dialect dialect) {
  const SourceKey* strategy = draft.find(dialect, "save_strategy");
  const SourceKey* steps = draft.find(dialect, "save_steps");
  const bool is_axolotl = dialect == Dialect::kAxolotl;
  const std::string word = word_of(strategy, is_axolotl && steps == nullptr ? "epoch" : "steps");
  if (word == "no") {
    draft.map(*strategy, "output.save_strategy", Tree::of(std::string("no")));
    if (steps != nullptr) draft.harmless(*steps, "save_strategy is no");
  } else if (word == "steps") {
    if (strategy != nullptr) draft.map(*strategy, "output.save_strategy", Tree::of(std::string("steps")));
    if (steps != nullptr) return map_interval(draft, {steps, "output.save_steps"});
    draft.set_default("output.save_steps", "500", "transformers' default");
  } else if (word == "epoch" || word == "best") {
    if (strategy != nullptr)
      draft.no_equal(
          *strategy,
          "an epoch's steps follow from the data: set output.save_steps; final/ is saved all the same",
          "output.save_steps");
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
      draft.map(*strategy, "training.eval_strategy", Tree::of(std::string("no")));
    else if (!is_axolotl)
      draft.set_default("training.eval_strategy", "no", "transformers' default");
    if (steps != nullptr) draft.harmless(*steps, "eval_strategy is no");
  } else if (word == "steps") {
    if (strategy != nullptr) draft.map(*strategy, "training.eval_strategy", Tree::of(std::string("steps")));
    if (steps != nullptr) return map_interval(draft, {steps, "training.eval_steps"});
    const Line* logging = draft.line("training.logging_steps");
    const std::string usual = logging != nullptr         ? to_yaml_flow(logging->value)
                              : dialect == Dialect::kTrl ? "10"
                                                         : "500";
    draft.set_default("training.eval_steps", usual, "as logging_steps, transformers' default");
  } else if (word == "epoch") {
    draft.no_equal(*strategy, "an epoch's steps follow from the data: set training.eval_steps",
                   "training.eval_steps");
    if (steps != nullptr) draft.harmless(*steps, "eval_strategy is epoch");
  } else {
    draft.wrong(*strategy, "no, steps or epoch");
  }
}

}  // namespace

void settle_saving(Draft& draft, Dialect dialect) {
  if (const SourceKey* logging = draft.find(dialect, "logging_steps"))
    map_interval(draft, {logging, "training.logging_steps"});
  settle_saves(draft, dialect);
  settle_evaluation(draft, dialect);
}

}  // namespace plimsoll::importing
