// The program called in this process, its output caught.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "io/json.h"

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

/// The lines of --json; each must be an object.
inline std::vector<io::Tree> objects(const std::string& out) {
  std::vector<io::Tree> result;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    auto tree = io::parse_json(line);
    EXPECT_TRUE(tree && tree->kind == io::Tree::Kind::kMap) << line;
    if (tree) result.push_back(std::move(*tree));
  }
  return result;
}

}  // namespace plimsoll::cli
