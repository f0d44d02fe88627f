// Runs a trained random program on the CPU backend, bound and planned as a real session, and returns the
// bits.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/session_testing.h"
#include "training.h"

namespace plimsoll::fixtures {

struct CpuRun {
  int threads = 1;
  bool poison = false;
  bool separate = false;  ///< one buffer a storage instead of the planned arena
};

using Bits = std::map<std::string, std::vector<uint32_t>>;

inline void write_states(runtime::Session& session, const std::map<std::string, ir::RefTensor>& states) {
  for (const auto& [name, value] : states)
    if (ir::is_floating(value.type.dtype))
      session_testing::write_state(session, name, std::vector<float>(value.data.begin(), value.data.end()));
    else
      session_testing::write_state(session, name, std::vector<int32_t>(value.data.begin(), value.data.end()));
}

/// Bound and planned as one program of a session.
inline Result<passes::Program> bind_program(const Trained& t, const runtime::Device& device, bool separate) {
  return session_testing::plan_program(t.graph, device.target(), t.in_place, separate);
}

inline Bits read_states(const runtime::Session& session, const std::map<std::string, ir::RefTensor>& states) {
  Bits bits;
  for (const auto& [name, value] : states) bits[name] = session_testing::read_state<uint32_t>(session, name);
  return bits;
}

/// States after two runs of the program: the second meets what the first left in the arena.
inline Result<Bits> run_on_cpu(const Trained& t, const CpuRun& how) {
  cpu::CpuDevice device(how.threads);
  std::vector<passes::Program> programs;
  PLIMSOLL_ASSIGN(auto t_program, bind_program(t, device, how.separate));
  programs.push_back(std::move(t_program));
  PLIMSOLL_ASSIGN(passes::SessionPlan session_plan, passes::plan_session(std::move(programs)));
  PLIMSOLL_ASSIGN(auto session,
                  runtime::Session::create(device, std::move(session_plan), {.poison = how.poison}));
  for (int run = 0; run < 2; ++run) {
    write_states(*session, t.states);
    PLIMSOLL_TRY(session->run(0));
  }
  return read_states(*session, t.states);
}

}  // namespace plimsoll::fixtures
