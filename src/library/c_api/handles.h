// The structs behind the opaque handles of the C interface.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "library/batch.h"
#include "library/own_plan.h"
#include "library/own_session.h"
#include "library/trace.h"
#include "plimsoll/plimsoll_c.h"

struct pls_builder {
  std::shared_ptr<plimsoll::library::Trace> trace = std::make_shared<plimsoll::library::Trace>();
};

struct pls_plan {
  std::atomic<int> references{1};
  std::shared_ptr<const plimsoll::library::OwnPlan> own = {};  ///< null: of a run
  std::optional<plimsoll::strategy::Prepared> run = {};        ///< of a run
  std::string json = {};
  std::mutex mutex = {};
  std::optional<std::string> table = {}, timeline = {};  ///< once asked for

  [[nodiscard]] const plimsoll::strategy::Prepared& prepared() const { return own ? own->prepared() : *run; }
};

struct pls_batch {
  plimsoll::library::Batch batch = {};
};

struct pls_session {
  std::mutex mutex = {};  ///< one call at a time
  pid_t process = 0;      ///< that has made it
  std::unique_ptr<plimsoll::library::OwnSession> session = {};
  std::optional<plimsoll::Error> poison = {};  ///< the bug that it has met
  std::string host_state = "null";             ///< what was last saved or loaded
  std::string json = {};
};
