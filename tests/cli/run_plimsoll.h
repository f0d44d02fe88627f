// The program called in this process, its output caught.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands.h"

namespace plimsoll::cli {

struct Outcome {
  int code = -1;
  std::string out, err;
};

inline Outcome run_plimsoll(std::vector<std::string> words) {
  words.insert(words.begin(), "plimsoll");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = run(static_cast<int>(arguments.size()), arguments.data());
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

}  // namespace plimsoll::cli
