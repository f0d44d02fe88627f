// Runs of several ranks on one machine, as processes that `plimsoll launch` starts.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "e2e/program.h"

namespace plimsoll::e2e {

inline std::string run_of(const std::string& batch, int steps) {
  // A table that is large enough to be cut into a piece for each rank.
  std::string run =
      run_file("training: {global_batch_size: " + batch + ", max_steps: " + std::to_string(steps) +
               ", learning_rate: 3.0e-3, seed: 5, logging_steps: 1}\nruntime: {threads: 1}\n");
  run.replace(run.find("259"), 3, "1000");
  return run;
}

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (sanitized()) GTEST_SKIP() << "many processes";
    folder_.write("train.txt", some_text(60'000));
    folder_.write("eval.txt", some_text(4000));
    folder_.write("run.yaml", run_of("7", 6));
  }
  /// Trains into a folder of its own.
  Outcome train(int ranks, const std::string& more = "", const std::string& environment = "") {
    const std::string command = "train run.yaml --json " + on_device("") + more;
    return folder_.run(ranks == 1 ? command : "launch --ranks " + std::to_string(ranks) + " -- " + command,
                       environment);
  }
  std::string trained(int ranks, const std::string& name, const std::string& more = "",
                      const std::string& environment = "") {
    const Outcome run = train(ranks, " output.dir=" + name + " " + more, environment);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    out_ = run.out;
    return folder_.read(name + "/final/model.safetensors");
  }
  /// The losses of what was trained last.
  [[nodiscard]] std::vector<double> losses() const {
    std::vector<double> all;
    std::istringstream lines(events_of(out_));
    for (std::string line; std::getline(lines, line);)
      if (const size_t at = line.find("\"loss\": ");
          at != line.npos && line.find("\"event\": \"step\"") != line.npos)
        all.push_back(std::strtod(line.c_str() + at + 8, nullptr));
    return all;
  }

  Folder folder_;
  std::string out_;
};

}  // namespace plimsoll::e2e
