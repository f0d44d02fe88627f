#include "strategy/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "settings/named_profile.h"

namespace plimsoll::strategy {
namespace {

constexpr int64_t kReserveBytes = int64_t{256} << 20;
/// In a small group 256 MiB would be all of it.
constexpr int64_t kLeastPartReserved = 10;

}  // namespace

int64_t budget_bytes(const settings::MemoryBudget& budget, const MachineMemory& memory) {
  switch (budget.kind) {
    case settings::MemoryBudget::Kind::kBytes:
      return budget.bytes;
    case settings::MemoryBudget::Kind::kShare:
      return static_cast<int64_t>(budget.share * static_cast<double>(memory.limit_bytes));
    case settings::MemoryBudget::Kind::kAuto:
      break;
  }
  return memory.available_bytes - std::min(kReserveBytes, memory.available_bytes / kLeastPartReserved);
}

int64_t tokenizing_budget(const settings::MemoryBudget& budget, const MachineMemory& memory) {
  return budget.kind == settings::MemoryBudget::Kind::kAuto ? 0 : budget_bytes(budget, memory);
}

std::vector<std::string> budget_notes(const settings::RunConfig& config, const MachineMemory& memory) {
  const settings::MemorySettings& m = config.memory;
  std::vector<std::string> notes;
  for (const auto& [name, budget] : {std::pair{"memory.budget", &m.budget},
                                     {"memory.device_budget", &m.device_budget},
                                     {"memory.host_budget", &m.host_budget}}) {
    const bool is_of_card = budget == &m.device_budget && is_for_card(config);
    if (budget->kind != settings::MemoryBudget::Kind::kBytes || is_of_card ||
        budget->bytes <= memory.limit_bytes)
      continue;
    const std::string limit = to_string(Bytes(memory.limit_bytes));
    notes.push_back(fmt::format("{} is {}, and {}", name, to_string(Bytes(budget->bytes)),
                                memory.limited_by.empty()
                                    ? fmt::format("this machine has {}", limit)
                                    : fmt::format("{} allows {}", memory.limited_by, limit)));
  }
  return notes;
}

}  // namespace plimsoll::strategy
