#include "training/follow.h"

namespace plimsoll::training {
namespace {

/// What rank 0 wants of this one before the next step.
Status assist(Trainer& trainer, RankDecision decision) {
  if (decision == RankDecision::kServe) return trainer.serve_shared_states();
  if (decision == RankDecision::kRestore) return trainer.restore_best();
  if (decision == RankDecision::kGather) return trainer.gather_parameters();
  PLIMSOLL_ASSIGN([[maybe_unused]] const std::optional<EvalEvent> event, trainer.evaluate());
  return Ok{};
}

}  // namespace

Status follow(Trainer& trainer, RollCall& roll_call, const Stop& stop) {
  RankReport report = trainer.first_report();
  for (bool is_first = true;; is_first = false) {
    report.stop = stop ? stop() : "";
    PLIMSOLL_TRY(roll_call.report(report));
    if (is_first) PLIMSOLL_TRY(trainer.start_shared_parameters());
    PLIMSOLL_ASSIGN(RankDecision decision, roll_call.decide(RankDecision::kStep));
    while (decision != RankDecision::kStep && decision != RankDecision::kFinish) {
      PLIMSOLL_TRY(assist(trainer, decision));
      PLIMSOLL_ASSIGN(decision, roll_call.decide(RankDecision::kStep));
    }
    if (decision == RankDecision::kFinish) return Ok{};
    PLIMSOLL_ASSIGN(const StepEvent event, trainer.step());
    report = trainer.report_of(event);
  }
}

}  // namespace plimsoll::training
