// A run file that tests of its settings start from, and what is said of one that is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "settings/run_config.h"

namespace plimsoll::settings {

inline constexpr const char* kRun = R"(
model:
  preset: smollm-135m
data:
  train: data/train.npy
  sequence_length: 128
training:
  global_batch_size: 8
  max_steps: 20
  warmup_steps: 5
)";

inline Result<RunConfig> parse_run(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(text, "run.yaml", overrides);
}

inline std::vector<std::string> said(const Error& error) {
  std::vector<std::string> all = {error.message()};
  for (const Error& other : error.more) all.push_back(other.message());
  return all;
}

}  // namespace plimsoll::settings
