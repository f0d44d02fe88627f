#include "training/observer.h"

#include <fmt/format.h>

#include <cmath>

namespace plimsoll::training {

std::string EvalEvent::text(int digits) const {
  std::string text = fmt::format("loss {:.{}f}", loss, digits);
  if (has_perplexity) text += fmt::format(", perplexity {:.{}g}", std::exp(loss), digits);
  for (const metrics::Value& m : metrics) text += fmt::format(", {} {:.{}g}", m.name, m.value, digits);
  return text;
}

std::string EvalEvent::counts() const {
  const std::string over = fmt::format("over {} {}", targets, loss_unit);
  if (loss_unit == unit) return over;
  return over +
         (loss_unit.ends_with(unit) ? fmt::format(" of {}", units) : fmt::format(" of {} {}", units, unit));
}

}  // namespace plimsoll::training
