// Runs the built binary as a user would, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "part_of.h"
#include "sanitizer.h"

namespace plimsoll::e2e {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

/// Plans of the tests must not depend on what somebody calibrated, nor on what is measured at first use: the
/// programs look for a profile here, where none can be kept.
inline const bool has_no_profile = setenv("XDG_CACHE_HOME", "/dev/null", /*overwrite=*/1) == 0;

/// Overrides that put every run of a test program on another device, with the CPU's bits: the environment's
/// PLIMSOLL_E2E_DEVICE, "runtime.device=discrete runtime.discrete.seed=3". Empty: the CPU.
inline std::string device_overrides() {
  const char* text = std::getenv("PLIMSOLL_E2E_DEVICE");
  return text == nullptr ? "" : text;
}

/// Whether runs are on a device whose memory is not the process's.
inline bool on_discrete() { return device_overrides().find("discrete") != std::string::npos; }

/// Under a sanitizer memory is not what a plan says, and a model of this size takes minutes.
inline bool sanitized() { return kSanitizer; }

/// A command line with the device's overrides, where it takes any: behind the run file.
inline std::string on_device(const std::string& arguments) {
  for (const char* command : {"train ", "eval ", "plan ", "bench step "})
    if (arguments.starts_with(command) && arguments.find(".yaml") != std::string::npos &&
        arguments.find("--diff") == std::string::npos &&
        arguments.find("runtime.device") == std::string::npos)
      return arguments + " " + device_overrides();
  return arguments;
}

/// What a run with --json said of each step and evaluation, before the first figure of time.
inline std::string events_of(const std::string& out) {
  std::string events;
  for (size_t begin = 0, end; (end = out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = out.substr(begin, end - begin);
    if (line.find("\"event\": \"step\"") != std::string::npos)
      events += line.substr(0, line.find("\"step_seconds\"")) + "\n";
    if (line.find("\"event\": \"eval\"") != std::string::npos) events += line + "\n";
  }
  return events;
}

/// A whole number of what a run with --json said: the last that stands behind this key.
inline int64_t number(const std::string& text, const std::string& key) {
  const size_t at = text.rfind("\"" + key + "\":");
  EXPECT_NE(at, std::string::npos) << key;
  return at == std::string::npos ? -1 : std::strtoll(text.c_str() + at + key.size() + 3, nullptr, 10);
}

/// A line for each run, by which seeds.py compares devices, to the file that PLIMSOLL_E2E_RECORD names: the
/// test and which of its runs it is, the exit code, and sums of what must be the same.
inline void record(int exit_code, const std::string& out, const std::string& model) {
  const char* path = std::getenv("PLIMSOLL_E2E_RECORD");
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  if (path == nullptr || test == nullptr) return;
  static std::string last;
  static int run = 0;
  const std::string name = std::string(test->test_suite_name()) + "." + test->name();
  run = name == last ? run + 1 : 1;
  last = name;
  const std::hash<std::string> sum;
  std::ofstream(path, std::ios::app) << name << " run " << run << ": exit " << exit_code << " events "
                                     << sum(events_of(out)) << " model " << sum(model) << "\n";
}

/// A temporary folder, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "plimsoll-e2e-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  /// Runs `plimsoll <arguments>` here, with `environment` ("NAME=value") set and standard input from `input`.
  [[nodiscard]] Outcome run(const std::string& arguments, const std::string& environment = "",
                            const std::string& input = "/dev/null") const {
    const std::string command = "cd '" + path_ + "' && " + environment + " '" PLIMSOLL_BINARY "' " +
                                on_device(arguments) + " >out.txt 2>err.txt <" + input;
    const int status = std::system(command.c_str());
    const Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("out.txt"),
                          read("err.txt")};
    record(outcome.exit_code, outcome.out, read("out/final/model.safetensors"));
    return outcome;
  }

 private:
  std::string path_;
};

/// Some text: words in an order that a model can learn a little of.
inline std::string some_text(int bytes) {
  std::string text;
  for (unsigned i = 1; static_cast<int>(text.size()) < bytes; i = i * 1103515245U + 12345U)
    text += (i >> 16) % 3 == 0 ? "the ship " : (i >> 16) % 3 == 1 ? "is loaded " : "to her line. ";
  text.resize(static_cast<size_t>(bytes));
  return text;
}

/// A small odd Llama: nothing divides anything. `extra` are further lines of the run file.
inline std::string run_file(const std::string& extra = "") {
  return "model:\n"
         "  config: {model_type: llama, vocab_size: 259, hidden_size: 60, intermediate_size: 70, "
         "num_hidden_layers: 2,\n"
         "    num_attention_heads: 3, num_key_value_heads: 1, head_dim: 20, max_position_embeddings: 400, "
         "rms_norm_eps: 1.0e-5,\n"
         "    tie_word_embeddings: true, attention_bias: true}\n"
         "  init: random\n"
         "data: {train: train.txt, eval: eval.txt, sequence_length: 300}\n"
         "output: {dir: out}\n" +
         extra;
}

/// What must be the same however a run is carried out.
struct Result {
  std::string model;   ///< the final weights
  std::string events;  ///< of each step and evaluation everything before the first figure of time
};

/// Of `train --json` in `folder`, which has ended with `outcome`.
inline Result result_of(const Folder& folder, const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return {folder.read("out/final/model.safetensors"), events_of(outcome.out)};
}

}  // namespace plimsoll::e2e
