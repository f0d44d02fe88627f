// The loop of a run: steps, evaluations and checkpoints until the last step or a request to stop, then
// the final model.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/stop.h"
#include "training/observer.h"
#include "training/trainer.h"

namespace plimsoll::training {

/// "nothing is left to do: …", of a run whose final model is whole.
std::string nothing_left(const Trainer& trainer);

class RunLoop {
 public:
  /// `resume`: TrainerOptions::resume, for the hint of a run that is stopped. `stop` is asked between steps.
  /// All outlive it.
  /// `roll_call`: of rank 0 of several; null: one rank.
  RunLoop(Trainer& trainer, Observer& observer, std::string resume, Stop stop, RollCall* roll_call = nullptr)
      : trainer_(trainer),
        observer_(observer),
        resume_(std::move(resume)),
        stop_(std::move(stop)),
        roll_call_(roll_call) {}

  /// Runs until nothing is left and writes the final model. Errors: as Trainer's; kInterrupted where it was
  /// asked to stop, after saving.
  Status operator()();

 private:
  /// The mean loss since the last logged step, as transformers logs it. A loss that is not finite is left out
  /// where training.logging_nan_inf_filter says so and another one is finite.
  class MeanLoss {
   public:
    double add(double loss, bool filter);

   private:
    double sum_ = 0, last_ = 0;
    int64_t count_ = 0;
  };

  Status step();
  /// After every training.eval_steps steps, or where an epoch ends, and after the last one.
  Status evaluate_if_due();
  Status start_checkpoint();
  /// Reports saves that have ended; with `wait`, waits for the one in flight.
  Status report_saved(bool wait);
  /// Keeps the error of a save that failed at the last step for the end, so that the final model is written
  /// even where its checkpoint cannot be.
  Status hold(Status saved, bool last);
  Status save_final();
  /// Around whatever reads states that ranks share: the others serve it meanwhile.
  Status begin_shared_reads();
  Status end_shared_reads();
  /// What ranks have updated of the parameters comes to all, before this one reads them.
  Status gather_parameters();
  /// Where ranks share the parameters, has all of them do what this rank does next.
  Status call_all(RankDecision decision);
  void report_early_stop();
  [[nodiscard]] bool is_asked_to_stop() const { return !stop_reason().empty(); }
  /// Of this process or another rank.
  [[nodiscard]] std::string stop_reason() const;
  /// Hears all ranks after a step, or before the first one.
  Status call_roll(StepEvent* event);
  /// Saves the steps done. The error that a run which is asked to stop ends with.
  Status stop();

  Trainer& trainer_;
  Observer& observer_;
  std::string resume_;
  Stop stop_;
  RollCall* roll_call_;
  MeanLoss losses_;
  bool saved_ = false;            ///< a checkpoint, in this process
  std::optional<Error> unsaved_;  ///< the first save that failed at the last step
};

}  // namespace plimsoll::training
