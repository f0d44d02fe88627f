#include "passes/session_plan.h"

#include <algorithm>
#include <map>

namespace plimsoll::passes {

const SessionState* SessionPlan::find_state(std::string_view name) const {
  const auto it =
      std::find_if(states.begin(), states.end(), [&](const auto& s) { return s.decl.name == name; });
  return it == states.end() ? nullptr : &*it;
}

int SessionPlan::find_program(std::string_view name) const {
  for (size_t i = 0; i < programs.size(); ++i)
    if (programs[i].graph.name == name) return static_cast<int>(i);
  return -1;
}

int64_t SessionPlan::class_bytes(ir::StateClass state_class) const {
  int64_t total = 0;
  for (const SessionState& s : states)
    if (s.decl.state_class == state_class) total += s.decl.type.bytes().count;
  return total;
}

Result<SessionPlan> plan_session(std::vector<Program> programs) {
  SessionPlan session;
  std::map<std::string, size_t> index;
  for (const Program& program : programs) {
    session.arena_bytes = std::max(session.arena_bytes, program.plan.arena_bytes);
    for (const ir::StateDecl& decl : program.graph.states()) {
      const auto [it, inserted] = index.emplace(decl.name, session.states.size());
      if (!inserted) {
        if (session.states[it->second].decl == decl) continue;
        return Error{ErrorCode::kInvalidArgument, "two programs declare a state differently", decl.name,
                     "this is a bug"};
      }
      session.states.push_back({decl, session.persistent_bytes});
      session.persistent_bytes += round_up(decl.type.bytes().count, kStorageAlignment);
    }
  }
  session.persistent_bytes = round_up(session.persistent_bytes, kPageBytes);
  session.programs = std::move(programs);
  return session;
}

}  // namespace plimsoll::passes
