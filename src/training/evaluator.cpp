#include "training/evaluator.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace plimsoll::training {
Result<std::unique_ptr<Evaluator>> Evaluator::open(const settings::RunConfig& config,
                                                   const preprocessing::RunData& data,
                                                   const strategy::Prepared& prepared) {
  const datasets::TrainingDataOptions options = strategy::data_options(config, prepared, data, /*eval=*/true);
  std::vector<Part> parts;
  for (size_t i = 0; i < data.eval.size(); ++i) {
    PLIMSOLL_ASSIGN(datasets::TrainingData opened, datasets::TrainingData::open({&data.eval[i], 1}, options));
    parts.push_back({i < data.eval_names.size() ? data.eval_names[i] : "", std::move(opened)});
  }
  return std::unique_ptr<Evaluator>(
      new Evaluator(std::move(parts), *prepared.task, config.training.global_batch_size));
}

std::vector<std::string> Evaluator::notes() const {
  std::vector<std::string> lines;
  for (const Part& part : parts_)
    for (const std::string& line : preprocessing::packing_notes(part.data))
      lines.push_back(part.name.empty() ? line : part.name + ": " + line);
  return lines;
}

int64_t Evaluator::num_examples() const {
  int64_t count = 0;
  for (const Part& part : parts_) count += part.data.num_examples();
  return count;
}

void Evaluator::bind(runtime::Session& session, std::span<std::byte> scratch,
                     const strategy::Prepared& prepared) {
  const std::vector<int64_t>& lengths = prepared.buckets.lengths;
  session_ = &session;
  scratch_ = scratch;
  micro_batch_size_ = static_cast<size_t>(prepared.split.micro_batch_size);
  feeder_ = std::make_unique<BatchFeeder>(session, *prepared.task, lengths);
  for (const int64_t length : lengths)
    programs_.push_back(
        session.plan().find_program({passes::ProgramRole::kEval, planner::bucket_of(length, lengths)}));
  if (!task_.has_metrics()) return;
  metrics_ = task_.make_metrics(num_examples());
  for (Part& part : parts_)
    if (!part.name.empty()) part.metrics = task_.make_metrics(part.data.num_examples());
  outputs_.resize(static_cast<size_t>(session.type(planner::kLogitsState).num_elements()));
}

Status Evaluator::add_to_metrics(Part& part, size_t bucket, std::span<const int64_t> positions) {
  if (!metrics_) return Ok{};
  PLIMSOLL_TRY(session_->read(planner::kLogitsState, std::as_writable_bytes(std::span(outputs_))));
  const size_t width = outputs_.size() / micro_batch_size_;
  const auto index = static_cast<size_t>(&part - parts_.data());
  for (size_t r = 0; r < positions.size(); ++r) {
    const std::span<const float> outputs = std::span(outputs_).subspan(r * width, width);
    const datasets::ExampleRow row = feeder_->row(bucket, static_cast<int64_t>(r));
    for (metrics::Metrics* metrics : {metrics_.get(), part.metrics.get()})
      if (metrics != nullptr) task_.add_to(*metrics, outputs, row);
    if (const auto answer = task_.answer(outputs, row)) shown_.add({index, positions[r], *answer});
  }
  return Ok{};
}

Result<std::optional<Evaluator::Sum>> Evaluator::run_part(Part& part, int64_t before,
                                                          const std::function<bool()>& stopped,
                                                          const EvalProgress& progress) {
  const int64_t end = part.data.num_examples(), all = num_examples();
  const auto batch_size = static_cast<int64_t>(positions_.size());
  Sum total;
  if (part.metrics) part.metrics->clear();
  for (int64_t block = 0; block < end; block += batch_size) {
    PLIMSOLL_TRY(session_->fill(planner::kLossState, std::bit_cast<uint32_t>(planner::kLossStart)));
    const std::span batch =
        std::span(positions_).first(static_cast<size_t>(std::min(batch_size, end - block)));
    PLIMSOLL_ASSIGN(const int64_t length, part.data.look_up(block, batch, scratch_));
    const size_t bucket = feeder_->bucket_of(length);
    for (size_t first = 0; first < batch.size(); first += micro_batch_size_) {
      if (stopped && stopped()) return std::optional<Sum>();
      if (progress) progress(before + block + static_cast<int64_t>(first), all);
      const std::span micro = batch.subspan(first, std::min(micro_batch_size_, batch.size() - first));
      PLIMSOLL_ASSIGN(const datasets::ExampleCounts read, feeder_->read(part.data, micro, bucket, scratch_));
      PLIMSOLL_TRY(session_->run(programs_[bucket]));
      PLIMSOLL_TRY(add_to_metrics(part, bucket, micro));
      total.counts.add(read);
    }
    PLIMSOLL_ASSIGN(const float sum, session_->value<float>(planner::kLossState));
    total.loss += static_cast<double>(sum);
  }
  return std::optional(total);
}

EvalEvent Evaluator::event_of(int64_t step, const Sum& sum, metrics::Metrics* metrics) const {
  EvalEvent event;
  event.step = step;
  event.units = sum.counts.units;
  event.unit = task_.unit().name;
  event.loss_unit = task_.loss_unit();
  event.targets = sum.counts.targets;
  event.has_perplexity = task_.has_perplexity();
  if (metrics != nullptr) event.metrics = metrics->values();
  if (metrics != nullptr && !metrics->confusion().empty())
    event.confusion = {{task_.class_names().begin(), task_.class_names().end()},
                       {metrics->confusion().begin(), metrics->confusion().end()}};
  event.loss = sum.counts.targets > 0 ? sum.loss / static_cast<double>(sum.counts.targets) : 0;
  if (std::isnan(event.loss)) event.loss = std::fabs(event.loss);  // a NaN has no sign
  return event;
}

Result<std::vector<EvalExample>> Evaluator::shown() const {
  std::vector<EvalExample> examples;
  const auto name = [&](int32_t label) { return task_.class_names()[static_cast<size_t>(label)]; };
  for (const AnsweredExample& each : shown_.chosen()) {
    PLIMSOLL_ASSIGN(std::string file, parts_[each.part].data.name_at(each.position, scratch_));
    examples.push_back(
        {std::move(file), name(each.answer.label), name(each.answer.predicted), each.answer.score});
  }
  return examples;
}

Result<std::optional<EvalEvent>> Evaluator::run(int64_t step, const std::function<bool()>& stopped,
                                                const EvalProgress& progress) {
  if (metrics_) metrics_->clear();
  shown_.clear();
  std::vector<EvalEvent> events;
  Sum all;
  int64_t before = 0;
  for (Part& part : parts_) {
    PLIMSOLL_ASSIGN(const std::optional<Sum> sum, run_part(part, before, stopped, progress));
    if (!sum) return std::optional<EvalEvent>();
    before += part.data.num_examples();
    all.loss += sum->loss;
    all.counts.add(sum->counts);
    if (part.name.empty()) continue;
    events.push_back(event_of(step, *sum, part.metrics.get()));
    events.back().name = part.name;
  }
  EvalEvent event = event_of(step, all, metrics_.get());
  event.parts = std::move(events);
  PLIMSOLL_ASSIGN(event.examples, shown());
  return std::optional(std::move(event));
}

}  // namespace plimsoll::training
