// A session: persistent storages, and the programs that share them and one arena.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/bind_storage.h"
#include "passes/memory_plan.h"

namespace plimsoll::passes {

/// A program, bound and planned.
struct Program {
  ir::Graph graph;
  Binding binding;
  MemoryPlan plan;
};

/// A persistent storage and where it lies in the session's block.
struct SessionState {
  ir::StateDecl decl;
  int64_t offset = 0;
};

/// Everything a session holds. The persistent block is one allocation, the arena another, as large as the
/// largest of the programs' arenas.
struct SessionPlan {
  std::vector<SessionState> states;
  std::vector<Program> programs;
  int64_t persistent_bytes = 0;
  int64_t arena_bytes = 0;

  [[nodiscard]] const SessionState* find_state(std::string_view name) const;
  /// Index of the program called `name`, or -1.
  [[nodiscard]] int find_program(std::string_view name) const;
  /// Logical bytes of all states of a class.
  [[nodiscard]] int64_t class_bytes(ir::StateClass state_class) const;
};

/// Lays out the states of `programs` in order of first appearance. The same name must be declared alike in
/// all. Errors: kInvalidArgument where it is not.
Result<SessionPlan> plan_session(std::vector<Program> programs);

}  // namespace plimsoll::passes
