// `plan --explain precision`: what each op of the forward pass runs in, and why.
#pragma once

#include <span>

#include "passes/autocast.h"

namespace plimsoll::cli {

/// A table with a row for ops that differ in their layer's number alone; with `json` an object a line for
/// each op: {"event":"precision","op","layer","computes","stores","why"}. On stdout.
void print_precision(std::span<const passes::PrecisionChoice> choices, bool json);

}  // namespace plimsoll::cli
