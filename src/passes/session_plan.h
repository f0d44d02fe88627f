// A session: persistent storages, and the programs that share them and, in each memory space, one arena.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/memory/bind_storage.h"
#include "passes/memory/memory_plan.h"
#include "passes/order/issue_order.h"
#include "passes/program_id.h"

namespace plimsoll::passes {

/// A program, bound, planned and ordered.
struct Program {
  ir::Graph graph;
  Binding binding;
  MemoryPlan plan;
  IssueOrder issue;
  ProgramId id = {};  ///< graph.name is its printed name
};

/// A persistent storage and where it lies in its space's block.
struct SessionState {
  ir::StateDecl decl;
  int64_t offset = 0;
};

/// A state whose memory ranks share, as it would be on one rank. Each rank has a piece of it: rank r's begins
/// at r times the piece, and the last ones hold zeros behind the tensor's end. Or one rank has all of it.
struct SharedState {
  std::string name;
  ir::TensorType type;
  int32_t state = -1;  ///< of SessionPlan::states: where this rank keeps what it has
  int32_t owner = -1;  ///< the rank that has all of it; -1: each has a piece
};

/// Bytes of one space: the block of its states is one allocation, the arena another, as large as the largest
/// of the programs' arenas.
struct PoolBytes {
  int64_t persistent = 0;
  int64_t arena = 0;
  [[nodiscard]] int64_t total() const { return persistent + arena; }
};

/// Whether the host writes the state each step, through staging memory of its own.
bool is_staged(const ir::StateDecl& decl);

/// Everything a session holds.
struct SessionPlan {
  std::vector<SessionState> states;
  std::vector<int32_t> states_by_name;  ///< indices of states, in the order of their names
  std::vector<SharedState> shared;      ///< in the order of their names
  std::vector<Program> programs;
  std::array<PoolBytes, ir::kNumSpaces> pools;
  /// Pinned host memory through which the host writes the states that it gives each step - inputs and
  /// scalars, twice each, so that it may go on while the device reads - and through which anything else is
  /// moved.
  int64_t staging_bytes = 0;
  int64_t transfer_bytes =
      0;  ///< of one of its four buffers for what is moved: two, and two in the background

  [[nodiscard]] const PoolBytes& pool(ir::MemorySpace space) const {
    return pools[static_cast<size_t>(space)];
  }
  [[nodiscard]] const PoolBytes& device() const { return pool(ir::MemorySpace::kDevice); }

  [[nodiscard]] const SessionState* find_state(std::string_view name) const;
  /// Null where ranks do not share it.
  [[nodiscard]] const SharedState* find_shared(std::string_view name) const;
  /// Whether there is a state of that name, here or on another rank.
  [[nodiscard]] bool has_state(std::string_view name) const {
    return find_state(name) != nullptr || find_shared(name) != nullptr;
  }
  /// The state as it would be on one rank. Checked to exist.
  [[nodiscard]] ir::StateDecl whole(std::string_view name) const;
  /// Notes that ranks share a state, whose part of this rank is state `kept`; nothing where there is none.
  void share(SharedState shared, std::string_view kept);
  /// Index of that program, or -1.
  [[nodiscard]] int find_program(const ProgramId& id) const;
  /// Logical bytes of all states of a class.
  [[nodiscard]] int64_t class_bytes(ir::StateClass state_class) const;
};

struct SessionPlanOptions {
  /// Bytes of a buffer through which states are moved that the host does not write each step; 0 where
  /// the host reaches the device's memory.
  int64_t transfer_bytes = 0;
};

/// Lays out the states of `programs` space by space: scalars, inputs, then the others, each in order of first
/// appearance, so that what the host writes together lies together. The same name must be declared alike in
/// all. Errors: kInvalidArgument where it is not.
Result<SessionPlan> plan_session(std::vector<Program> programs, const SessionPlanOptions& options = {});

/// The same of states that are known, each name once, whatever programs declare.
SessionPlan plan_session(std::vector<ir::StateDecl> states, std::vector<Program> programs,
                         const SessionPlanOptions& options);

}  // namespace plimsoll::passes
