// A first run file for a model and data: chosen by looking at both, planned before it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "planner/report/report.h"

namespace plimsoll::analysis {

struct RunRequest {
  std::string model;              ///< a model directory, a hub id of the local cache, or a preset's name
  std::vector<std::string> data;  ///< files or globs
  std::string tokenizer = {};     ///< a folder or tokenizer.json; empty: the model's
  std::string output_dir = {};    ///< empty: runs/<model>-<data>
  std::optional<int64_t> lora_rank = {};    ///< adapters of that rank are trained, not the whole model
  std::vector<std::string> overrides = {};  ///< settings that the run file is to have: "path=value", in YAML
  int num_threads = 1;
};

struct RunProposal {
  std::string yaml;            ///< a run file with a comment on each choice
  std::string output_dir;      ///< where the run will write
  planner::PlanReport report;  ///< its plan, which fits
};

/// Looks at the model's config and at up to 512 examples of the data, chooses task, lengths, batch, rate,
/// epochs and precision, and plans that, for a card where the overrides name one; where it does not fit,
/// takes the cheapest settings that would. Writes nothing. Errors: kBadData of model and data (a conversation
/// without a template, say), kInvalidArgument, kDoesNotFit where nothing that is known helps.
Result<RunProposal> propose_run(const RunRequest& request);

}  // namespace plimsoll::analysis
