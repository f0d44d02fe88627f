// Keeps the running values of BatchNorm layers while a step runs, and puts them back where the step does not
// count: forward writes them before anybody knows whether the loss is finite.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/session.h"

namespace plimsoll::library {

class RunningValues {
 public:
  RunningValues() = default;
  /// `states` by name; each has a state kept_state(name) beside it.
  explicit RunningValues(std::vector<std::string> states) : states_(std::move(states)) {}

  /// Errors: of the device.
  Status keep(runtime::Session& session) const;
  Status put_back(runtime::Session& session) const;

 private:
  std::vector<std::string> states_;
};

}  // namespace plimsoll::library
