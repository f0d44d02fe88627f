// Runs a trained random program on the CPU backend, bound and planned as a real session, and returns the
// bits.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "ops/op_list.h"
#include "passes/session_plan.h"
#include "runtime/session.h"
#include "training.h"

namespace plimsoll::testing {

struct CpuRun {
  int threads = 1;
  bool poison = false;
  bool separate = false;  ///< one buffer a storage instead of the planned arena
};

using Bits = std::map<std::string, std::vector<uint32_t>>;

inline void write_states(runtime::Session& session, const std::map<std::string, ir::RefTensor>& states) {
  for (const auto& [name, value] : states) {
    const runtime::TensorRef at = session.state(name);
    for (size_t i = 0; i < value.data.size(); ++i)
      if (ir::is_floating(value.type.dtype))
        at.as<float>()[i] = static_cast<float>(value.data[i]);
      else
        at.as<int32_t>()[i] = static_cast<int32_t>(value.data[i]);
  }
}

/// Bound and planned as one program of a session.
inline Result<passes::Program> bind_program(const Trained& t, const cpu::CpuBackend& backend, bool separate) {
  Graph graph = t.graph;
  passes::BindOptions bind;
  bind.in_place = t.in_place;
  bind.accepts_strided = [&](std::string_view op, size_t i) { return backend.accepts_strided(op, i); };
  bind.workspace_bytes = [&](const ir::OpTypes& types) { return backend.workspace_bytes(types); };
  PLIMSOLL_ASSIGN(passes::Binding binding, passes::bind_storage(graph, bind, ops::find_op));
  passes::MemoryPlan plan = passes::plan_memory(graph, binding, {.separate = separate});
  return passes::Program{std::move(graph), std::move(binding), std::move(plan)};
}

inline Bits read_states(const runtime::Session& session, const std::map<std::string, ir::RefTensor>& states) {
  Bits bits;
  for (const auto& [name, value] : states) {
    auto& words = bits[name];
    words.resize(value.data.size());
    std::memcpy(words.data(), session.state(name).data, words.size() * sizeof(uint32_t));
  }
  return bits;
}

/// States after two runs of the program: the second meets what the first left in the arena.
inline Result<Bits> run_on_cpu(const Trained& t, const CpuRun& how) {
  cpu::CpuBackend backend(how.threads);
  std::vector<passes::Program> programs;
  PLIMSOLL_ASSIGN(auto t_program, bind_program(t, backend, how.separate));
  programs.push_back(std::move(t_program));
  PLIMSOLL_ASSIGN(passes::SessionPlan session_plan, passes::plan_session(std::move(programs)));
  PLIMSOLL_ASSIGN(auto session,
                  runtime::Session::create(backend, std::move(session_plan), {.poison = how.poison}));
  for (int run = 0; run < 2; ++run) {
    write_states(*session, t.states);
    session->run(0);
  }
  return read_states(*session, t.states);
}

}  // namespace plimsoll::testing
