#include "tasks/task.h"

namespace plimsoll::tasks {

ir::Shape Input::shape(int64_t batch, int64_t length) const {
  if (!row.by_token && !has_columns) return ir::Shape{batch};
  return ir::Shape{batch, row.elements(length)};
}

datasets::BatchLayout Task::layout() const {
  datasets::BatchLayout layout;
  for (const Input& input : inputs_) layout.push_back(input.row);
  return layout;
}

std::unique_ptr<metrics::Metrics> Task::make_metrics(int64_t /*max_examples*/) const { return nullptr; }
int64_t Task::metrics_bytes(int64_t /*max_examples*/) const { return 0; }
void Task::add_to(metrics::Metrics& /*metrics*/, std::span<const float> /*outputs*/,
                  datasets::SequenceRow /*row*/) const {}

}  // namespace plimsoll::tasks
