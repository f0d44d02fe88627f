// `plan --explain precision`: what each op of the forward pass runs in and why, which conversions are ops of
// their own, how weights are kept.
#pragma once

#include <vector>

#include "planner/report/precision_report.h"

namespace plimsoll::cli {

/// Tables, with a row for what differs in its layer's number alone; with `json` an object a line for each:
/// {"event":"precision","op","layer","computes","stores":{"y","sum"},"why"},
/// {"event":"precision_cast","program","op","layer","shape","from","to","uses","readers","recomputed","why"},
/// {"event":"precision_weight","weight","stored","master","gradient","moments","rounding","products"}.
/// On stdout.
void print_precision(const planner::PrecisionReport& report,
                     const std::vector<planner::WeightStorage>& weights, bool json);

}  // namespace plimsoll::cli
