#include "training/follow.h"

namespace plimsoll::training {

Status follow(Trainer& trainer, RollCall& roll_call, const Stop& stop) {
  RankReport report = trainer.first_report();
  for (;;) {
    report.stop = stop ? stop() : "";
    PLIMSOLL_TRY(roll_call.report(report));
    PLIMSOLL_ASSIGN(RankDecision decision, roll_call.decide(RankDecision::kStep));
    while (decision == RankDecision::kServe) {
      PLIMSOLL_TRY(trainer.serve_shared_states());
      PLIMSOLL_ASSIGN(decision, roll_call.decide(RankDecision::kStep));
    }
    if (decision == RankDecision::kFinish) return Ok{};
    PLIMSOLL_ASSIGN(const StepEvent event, trainer.step());
    report = trainer.report_of(event);
  }
}

}  // namespace plimsoll::training
