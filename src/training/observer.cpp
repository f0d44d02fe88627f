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
  return has_perplexity ? fmt::format("over {} loss tokens of {}", targets, tokens)
                        : fmt::format("over {} examples of {} tokens", targets, tokens);
}

}  // namespace plimsoll::training
