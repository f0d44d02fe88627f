// The purpose of a program in a session. Code decides by the role; the printed name is for people and files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll::passes {

enum class ProgramRole : uint8_t {
  kStep,        ///< one micro-batch a step: forward, backward, update
  kMicroFirst,  ///< the first of several micro-batches: gradients are written to their accumulators
  kMicroNext,   ///< the others: gradients are added to them
  kMicroLast,   ///< the last of them, where ranks sum each gradient as soon as it is complete
  kUpdate,      ///< the optimizer's update from the accumulators
  kGather,      ///< what ranks have updated of the parameters, to all of them
  kEval,        ///< forward to the loss
  kLogits,      ///< forward to the logits
  kInit,        ///< random parameters
  kInitHead,    ///< the random parameter of a head that the weights lack
  kPrefill,     ///< generation: a chunk of the prompts into the cache
  kDecode,      ///< generation: one token a row
  kOther,       ///< no program of training or generation: a test's or a measurement's
};

/// "step", "micro_first", …: as texts and files have it.
std::string_view name(ProgramRole role);
/// Whether the program computes gradients of a micro-batch.
bool has_backward(ProgramRole role);
/// Whether its gradients go into accumulators.
bool accumulates(ProgramRole role);
/// Whether it draws parameters.
bool draws_parameters(ProgramRole role);

/// Which program of a session it is.
struct ProgramId {
  ProgramRole role = ProgramRole::kOther;
  int64_t bucket = 0;  ///< length of its sequences where each bucket has a program of its own; else 0
  bool operator==(const ProgramId&) const = default;
};

/// The printed name: "step", "step@128".
std::string name(const ProgramId& id);

}  // namespace plimsoll::passes
