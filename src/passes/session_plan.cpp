#include "passes/session_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"

namespace plimsoll::passes {

bool is_staged(const ir::StateDecl& decl) {
  return decl.space == ir::MemorySpace::kDevice &&
         (decl.state_class == ir::StateClass::kScalars || decl.state_class == ir::StateClass::kInput);
}

const SessionState* SessionPlan::find_state(std::string_view name) const {
  const auto name_of = [&](int32_t i) -> std::string_view {
    return states[static_cast<size_t>(i)].decl.name;
  };
  const auto it = std::ranges::lower_bound(states_by_name, name, {}, name_of);
  return it == states_by_name.end() || name_of(*it) != name ? nullptr : &states[static_cast<size_t>(*it)];
}

const SharedState* SessionPlan::find_shared(std::string_view name) const {
  const auto it = std::ranges::lower_bound(shared, name, {}, &SharedState::name);
  return it == shared.end() || it->name != name ? nullptr : &*it;
}

ir::StateDecl SessionPlan::whole(std::string_view name) const {
  if (const SharedState* s = find_shared(name))
    return {s->name, s->type, states[static_cast<size_t>(s->state)].decl.state_class};
  const SessionState* found = find_state(name);
  PLIMSOLL_CHECK(found != nullptr, std::string(name));
  return found->decl;
}

void SessionPlan::share(SharedState state, std::string_view kept) {
  const SessionState* found = find_state(kept);
  if (found == nullptr) return;
  state.state = static_cast<int32_t>(found - states.data());
  shared.insert(std::ranges::lower_bound(shared, state.name, {}, &SharedState::name), std::move(state));
}

int SessionPlan::find_program(const ProgramId& id) const {
  const auto found = std::ranges::find(programs, id, &Program::id);
  return found == programs.end() ? -1 : static_cast<int>(found - programs.begin());
}

int64_t SessionPlan::class_bytes(ir::StateClass state_class) const {
  int64_t total = 0;
  for (const SessionState& s : states)
    if (s.decl.state_class == state_class) total += s.decl.type.bytes().count;
  return total;
}

namespace {

int layout_rank(const ir::StateDecl& decl) {
  if (!is_staged(decl)) return 2;
  return decl.state_class == ir::StateClass::kScalars ? 0 : 1;
}

void lay_out(SessionPlan& session) {
  std::stable_sort(session.states.begin(), session.states.end(),
                   [](const auto& a, const auto& b) { return layout_rank(a.decl) < layout_rank(b.decl); });
  for (SessionState& s : session.states) {
    int64_t& end = session.pools[static_cast<size_t>(s.decl.space)].persistent;
    const int64_t bytes = round_up(s.decl.type.bytes().count, alignment_of(s.decl.space));
    s.offset = end;
    end += bytes;
    if (is_staged(s.decl)) session.staging_bytes += 2 * bytes;
  }
  session.states_by_name.resize(session.states.size());
  std::iota(session.states_by_name.begin(), session.states_by_name.end(), 0);
  std::ranges::sort(session.states_by_name, {}, [&](int32_t i) -> const std::string& {
    return session.states[static_cast<size_t>(i)].decl.name;
  });
}

}  // namespace

SessionPlan plan_session(std::vector<ir::StateDecl> states, std::vector<Program> programs,
                         const SessionPlanOptions& options) {
  SessionPlan session;
  session.states.reserve(states.size());
  for (ir::StateDecl& decl : states) session.states.push_back({std::move(decl), 0});
  lay_out(session);
  for (PoolBytes& pool : session.pools) pool.persistent = round_up(pool.persistent, kPageBytes);
  session.transfer_bytes = round_up(options.transfer_bytes, kStorageAlignment);
  session.staging_bytes = round_up(session.staging_bytes + 4 * session.transfer_bytes, kPageBytes);
  for (const Program& program : programs)
    for (size_t s = 0; s < ir::kNumSpaces; ++s)
      session.pools[s].arena = std::max(session.pools[s].arena, program.plan.pools[s].arena_bytes);
  session.programs = std::move(programs);
  return session;
}

Result<SessionPlan> plan_session(std::vector<Program> programs, const SessionPlanOptions& options) {
  std::vector<ir::StateDecl> states;
  std::map<std::string, size_t> index;
  for (const Program& program : programs)
    for (const ir::StateDecl& decl : program.graph.states()) {
      const auto [it, inserted] = index.emplace(decl.name, states.size());
      if (inserted)
        states.push_back(decl);
      else if (states[it->second] != decl)
        return Error{ErrorCode::kInvalidArgument, "two programs declare a state differently", decl.name,
                     "this is a bug"};
    }
  return plan_session(std::move(states), std::move(programs), options);
}

}  // namespace plimsoll::passes
