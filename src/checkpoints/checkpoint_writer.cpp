#include "checkpoints/checkpoint_writer.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/caught.h"
#include "base/process.h"
#include "base/span_log.h"
#include "checkpoints/disk_need.h"
#include "checkpoints/final_record.h"

namespace plimsoll::checkpoints {

Result<std::unique_ptr<CheckpointWriter>> CheckpointWriter::create(const settings::RunConfig& config,
                                                                   std::unique_ptr<CheckpointFiles> files,
                                                                   SaveOptions options) {
  std::unique_ptr<CheckpointWriter> writer(
      new CheckpointWriter(config, std::move(files), std::move(options)));
  if (!writer->options_.behind) return writer;
  PLIMSOLL_TRY(writer->start_thread());
  return writer;
}

Status CheckpointWriter::start_thread() {
  PLIMSOLL_ASSIGN(thread_, Thread::start("writing checkpoints", [this] { work(); }));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_; });
  if (refused_) return *refused_;
  return Ok{};
}

CheckpointWriter::~CheckpointWriter() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::set_counters(const RunCounters& counters) {
  CheckpointManifest& manifest = files_->manifest();
  manifest.step = counters.step;
  manifest.evaluated_step = counters.evaluated_step;
  manifest.position = counters.step * config_.training.global_batch_size;
  manifest.tokens = counters.tokens;
  manifest.skipped = counters.skipped;
  manifest.skipped_in_a_row = counters.skipped_in_a_row;
  manifest.best = counters.best;
}

Status CheckpointWriter::start(const RunCounters& counters) {
  const ScopedSpan span(SpanLane::kStep, kSaveSpan);
  const double now = now_seconds();
  finish();
  for (auto earlier = results_.begin(); earlier != results_.end(); ++earlier) {
    if (*earlier) continue;
    Error error = std::move(*earlier).error();
    results_.erase(earlier);
    return error;
  }
  PLIMSOLL_TRY(io::check_free_space(config_.output.dir, files_->checkpoint_bytes() + kSaveSlackBytes));
  set_counters(counters);
  started_ = now;
  PLIMSOLL_TRY(files_->mark());
  if (!thread_.joinable()) {
    end_save(save());
    return Ok{};
  }
  {
    const std::scoped_lock lock(mutex_);
    asked_ = reading_ = true;
    waited_ = now_seconds() - now;
  }
  changed_.notify_all();
  return Ok{};
}

void CheckpointWriter::wait_for_sources() {
  std::unique_lock lock(mutex_);
  if (!reading_) return;
  const ScopedSpan span(SpanLane::kStep, kSaveWaitSpan);
  const double start = now_seconds();
  changed_.wait(lock, [&] { return !reading_; });
  waited_ += now_seconds() - start;
}

void CheckpointWriter::release_sources() {
  {
    const std::scoped_lock lock(mutex_);
    reading_ = false;
  }
  changed_.notify_all();
}

std::optional<Result<SaveReport>> CheckpointWriter::poll() {
  const std::scoped_lock lock(mutex_);
  if (results_.empty()) return std::nullopt;
  Result<SaveReport> first = std::move(results_.front());
  results_.erase(results_.begin());
  return first;
}

void CheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !asked_; });
}

void CheckpointWriter::work() {
  pthread_setname_np(pthread_self(), "checkpoints");  // train/step_waits looks for it
  Status taken = caught([&] { return files_->take_buffers(); });
  std::unique_lock lock(mutex_);
  ready_ = true;
  if (!taken) refused_ = std::move(taken).error();
  changed_.notify_all();
  while (!refused_) {
    changed_.wait(lock, [&] { return asked_ || stopping_; });
    if (!asked_) return;
    lock.unlock();
    end_save(caught([&] { return save(); }));
    lock.lock();
  }
}

void CheckpointWriter::end_save(Result<SaveReport> result) {
  {
    const std::scoped_lock lock(mutex_);
    if (result && thread_.joinable()) result->waited_seconds = waited_;
    results_.push_back(std::move(result));
    asked_ = reading_ = false;
  }
  changed_.notify_all();
}

Result<SaveReport> CheckpointWriter::save() {
  const ScopedSpan span(thread_.joinable() ? SpanLane::kCheckpoint : SpanLane::kStep, "write a checkpoint");
  const int64_t step = files_->manifest().step;
  const std::string path = checkpoint_path(config_.output.dir, step);
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !is_checkpoint(path))
    return io::io_error("the path is occupied by a folder that Plimsoll did not create", path, EEXIST);
  PLIMSOLL_ASSIGN(io::AtomicDirectory directory, io::AtomicDirectory::create(path));
  PLIMSOLL_TRY(files_->write_checkpoint(directory, [this] { release_sources(); }));
  PLIMSOLL_TRY(publish(directory));
  const double seconds = now_seconds() - started_;
  rotate(step);
  return SaveReport{step, path, seconds, seconds};
}

Status CheckpointWriter::publish(io::AtomicDirectory& directory) {
  std::vector<std::string> hidden;
  // The oldest first: a process killed in between leaves the newest its name.
  Status published = io::hide_directories({options_.stale.rbegin(), options_.stale.rend()}, hidden);
  if (published) published = directory.publish();
  if (!published) {
    io::show_hidden(hidden);
    return published;
  }
  options_.stale.clear();
  io::remove_hidden(hidden);
  return Ok{};
}

void CheckpointWriter::rotate(int64_t step) const {
  if (!config_.output.save_total_limit) return;
  std::vector<FoundCheckpoint> found = find_checkpoints(config_.output.dir);
  std::erase_if(found, [&](const FoundCheckpoint& f) { return f.step > step; });
  const auto& best_state = files_->manifest().best;
  const auto best = std::find_if(found.begin(), found.end(), [&](const FoundCheckpoint& f) {
    return best_state && f.step == best_state->saved_step;
  });
  int64_t left = *config_.output.save_total_limit;
  if (best != found.end()) {
    left = best == found.begin() ? left - 1 : std::max<int64_t>(1, left - 1);
    found.erase(best);
  }
  for (const FoundCheckpoint& other : found)
    if (--left < 0) (void)io::retire_directory(other.path);  // the new one is whole: no reason to fail
}

Result<io::AtomicDirectory> CheckpointWriter::write_record() const {
  PLIMSOLL_ASSIGN(io::AtomicDirectory directory,
                  io::AtomicDirectory::create(record_path(config_.output.dir)));
  PLIMSOLL_TRY(files_->write_record(directory));
  return directory;
}

Result<SaveReport> CheckpointWriter::save_final(const RunCounters& counters, const std::string& card) {
  const double start = now_seconds();
  finish();
  PLIMSOLL_TRY(io::check_free_space(config_.output.dir, files_->final_bytes() + kSaveSlackBytes));
  set_counters(counters);
  PLIMSOLL_TRY(files_->mark());
  const std::string path = final_path(config_.output.dir);
  PLIMSOLL_ASSIGN(io::AtomicDirectory directory, io::AtomicDirectory::create(path));
  PLIMSOLL_TRY(files_->write_final(directory, card));
  // Whole before final/ has its name: a process killed between the two names leaves both (final_record.h).
  Result<io::AtomicDirectory> record = write_record();
  PLIMSOLL_TRY(publish(directory));
  const Status recorded = record ? record->publish() : Status(record.error());
  const double seconds = now_seconds() - start;
  SaveReport report{counters.step, path, seconds, seconds};
  if (!recorded) report.unrecorded = recorded.error();
  return report;
}

}  // namespace plimsoll::checkpoints
