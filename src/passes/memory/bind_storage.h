// Gives every value a place: a storage, an offset into it and strides. The last pass but one; after it,
// aliasing is a fact. States are storages of the session; everything else is a storage of the arena with a
// lifetime.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::passes {

/// What the report counts an arena storage as.
enum class Category : uint8_t { kActivations, kGradients, kWorkspace, kGathered };
inline constexpr size_t kNumCategories = 4;
std::string_view name(Category category);

/// Bytes of one space with a lifetime: positions in the order of issue, where a copy's source and destination
/// last until its copy_done. A state lives always; `first` and `last` are then meaningless.
struct Storage {
  int state = -1;     ///< index into Graph::states(), or -1: a storage of the arena
  int64_t bytes = 0;  ///< logical, before alignment
  int32_t first = 0;  ///< position in the order of the op that makes it
  int32_t last = 0;   ///< position of the last op that touches it, inclusive
  Category category = Category::kActivations;
  ir::MemorySpace space = ir::MemorySpace::kDevice;
  ir::OpId producer;
  bool on_pages = false;  ///< begins with a page: a disk moves it without a detour
};

struct Place {
  int32_t storage = -1;
  int64_t offset_bytes = 0;
  ir::Strides strides{};
};

struct Binding {
  std::vector<Storage> storages;
  std::vector<Place> places;             ///< by ValueId::index; storage -1 for values out of the order
  std::vector<int32_t> workspaces;       ///< by position in the order: storage or -1
  std::vector<ir::OpId> copied_assigns;  ///< state_assign ops that really move bytes
  /// By position: the storage in which a first run of the op leaves what it overwrites, or -1. Empty: no op
  /// is run twice.
  std::vector<int32_t> double_runs = {};
};

/// What is to be known of kernels. Empty functions: nothing is in the way.
struct KernelTraits {
  /// Whether a kernel reads an input through strides; a view that it does not take is copied before it.
  std::function<bool(std::string_view op, size_t input)> accepts_strided = {};
  /// Scratch of an op's kernel.
  std::function<int64_t(const ir::OpTypes&)> workspace_bytes = {};
  /// Whether there is a kernel for the op; else why not, and what would do instead.
  std::function<Status(const ir::OpTypes&)> accepts = {};
  /// Whether kernels read and write memory of that space.
  std::function<bool(ir::MemorySpace)> reaches = {};
};

struct BindOptions {
  /// In-place decisions of the in_place pass.
  std::vector<std::pair<ir::OpId, ir::Alias>> in_place = {};
  /// Values that the report counts as gradients.
  std::vector<ir::ValueId> gradients = {};
  /// Values that it counts as parameters gathered from the ranks.
  std::vector<ir::ValueId> gathered = {};
  KernelTraits device = {}, host = {};  ///< the host's: of what stands on ir::Queue::kHost
  /// Every op can be run twice: what it overwrites has a second place.
  bool runs_twice = false;
};

/// Inserts `copy` ops where a kernel needs a dense operand, then binds. A state_assign whose value can be
/// written into the state's storage, of its space, from the start costs nothing. Errors: kInvalidArgument for
/// a consumed operand that is read later, an op without a kernel (as the kernels' traits say it), an operand
/// in memory that kernels do not reach.
Result<Binding> bind_storage(ir::Graph& graph, const BindOptions& options, ir::OpLookup lookup);

}  // namespace plimsoll::passes
