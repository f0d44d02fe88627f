#include "passes/program_id.h"

#include <fmt/format.h>

#include <array>

namespace plimsoll::passes {

std::string_view name(ProgramRole role) {
  static constexpr std::array<std::string_view, 13> kNames = {
      "step",   "micro_first", "micro_next", "micro_last", "update", "gather", "eval",
      "logits", "init",        "init_head",  "prefill",    "decode", "other"};
  return kNames[static_cast<size_t>(role)];
}

bool has_backward(ProgramRole role) { return role == ProgramRole::kStep || accumulates(role); }

bool accumulates(ProgramRole role) {
  return role == ProgramRole::kMicroFirst || role == ProgramRole::kMicroNext ||
         role == ProgramRole::kMicroLast;
}

bool draws_parameters(ProgramRole role) {
  return role == ProgramRole::kInit || role == ProgramRole::kInitHead;
}

std::string name(const ProgramId& id) {
  return id.bucket == 0 ? std::string(name(id.role)) : fmt::format("{}@{}", name(id.role), id.bucket);
}

}  // namespace plimsoll::passes
