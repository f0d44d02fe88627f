#include "tasks/task.h"

namespace plimsoll::tasks {

std::unique_ptr<metrics::Metrics> Task::make_metrics(int64_t /*max_examples*/) const { return nullptr; }
int64_t Task::metrics_bytes(int64_t /*max_examples*/) const { return 0; }
void Task::add_to(metrics::Metrics& /*metrics*/, std::span<const float> /*outputs*/,
                  datasets::ExampleRow /*row*/) const {}

}  // namespace plimsoll::tasks
