// Small models against values recorded from PyTorch: transformers' loss, logits and gradients, and ten steps
// of torch.optim.AdamW alongside. tests/interop/recording.py says what a recording holds,
// tests/interop/compare.py compares every element live. The bounds are the live comparison's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "io/json.h"
#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

constexpr double kLossTolerance = 1e-5;    // relative
constexpr double kTensorTolerance = 1e-4;  // of the reference's norm ...
constexpr double kFloorTolerance = 1e-6;   // ... and of the norm of all tensors of the kind
constexpr double kStartTolerance = 1e-6;   // initial tensors: instruction sets differ in last bits alone

/// A tensor's norm, and its product with the unit vector of signs that recording.py describes.
struct Mark {
  double norm = 0, projection = 0;
};

Mark mark_of(const std::vector<float>& values) {
  double squares = 0, sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    squares += v * v;
    sum += (static_cast<uint32_t>(i) * 2654435761U) >> 31 != 0 ? -v : v;
  }
  return {std::sqrt(squares), sum / std::sqrt(static_cast<double>(values.size()))};
}

Mark recorded_mark(const io::Tree& pair) { return {pair.items.at(0).number, pair.items.at(1).number}; }

void expect_near(const Mark& ours, const Mark& theirs, double limit, const std::string& what) {
  EXPECT_NEAR(ours.norm, theirs.norm, limit) << what;
  EXPECT_NEAR(ours.projection, theirs.projection, limit) << what;
}

void expect_relative(double ours, double theirs, double tolerance, const std::string& what) {
  EXPECT_NEAR(ours, theirs, tolerance * std::abs(theirs)) << what;
}

/// Tensors whose marks stand in `recorded`, no more and no fewer.
void expect_tensors(const Tensors& ours, const io::Tree& recorded, double tolerance, double floor,
                    const std::string& kind) {
  double all = 0;
  for (const auto& [name, pair] : recorded.members) all += std::pow(recorded_mark(pair).norm, 2);
  EXPECT_EQ(ours.size(), recorded.members.size()) << kind;
  for (const auto& [name, pair] : recorded.members) {
    const Mark theirs = recorded_mark(pair);
    const auto tensor = ours.find(name);
    ASSERT_NE(tensor, ours.end()) << kind << " " << name;
    expect_near(mark_of(tensor->second.values()), theirs, tolerance * theirs.norm + floor * std::sqrt(all),
                kind + " " + name);
  }
}

/// The recorded rows as a 2-D array of i32.
std::string npy(const std::vector<io::Tree>& rows) {
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (" + std::to_string(rows.size()) +
                       ", " + std::to_string(rows.at(0).items.size()) + "), }";
  header += std::string(128 - 10 - header.size() - 1, ' ') + "\n";
  std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header;
  for (const io::Tree& row : rows)
    for (const io::Tree& token : row.items) {
      const auto id = static_cast<int32_t>(token.integer);
      file.append(reinterpret_cast<const char*>(&id), sizeof(id));
    }
  return file;
}

/// A run file from a recorded case; JSON is YAML.
std::string run_file_of(const io::Tree& recorded) {
  io::Tree run = io::Tree::map();
  run.set("model", io::Tree::map({{"config", *recorded.find("config")},
                                  {"init", io::Tree::of(std::string("random"))}}));
  run.set("data", io::Tree::map({{"train", io::Tree::of(std::string("tokens.npy"))},
                                 {"sequence_length", *recorded.find("sequence_length")},
                                 {"shuffle", io::Tree::of(false)}}));
  run.set("training", *recorded.find("training"));
  run.set("runtime", io::Tree::map({{"device", io::Tree::of(std::string("cpu"))},
                                    {"threads", io::Tree::of(int64_t{2})}}));
  run.set("output", io::Tree::map({{"dir", io::Tree::of(std::string("out"))}}));
  io::Tree kinds = io::Tree::list();
  for (const char* kind : {"loss", "gradients", "logits", "parameters"})
    kinds.items.push_back(io::Tree::of(std::string(kind)));
  run.set("debug", io::Tree::map({{"dump_dir", io::Tree::of(std::string("dump"))}, {"dump", kinds}}));
  return io::to_json(run);
}

std::vector<io::Tree> step_events(const std::string& out) {
  std::vector<io::Tree> steps;
  for (size_t begin = 0, end; (end = out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto event = io::parse_json(std::string_view(out).substr(begin, end - begin));
    EXPECT_TRUE(event) << out.substr(begin, end - begin);
    if (event && event->find("event")->text == "step") steps.push_back(std::move(*event));
  }
  return steps;
}

void expect_logits(const Tensors& dump, const io::Tree& recorded) {
  ASSERT_TRUE(dump.contains("logits"));
  const Tensor& logits = dump.at("logits");
  const std::vector<float> values = logits.values();
  const Mark theirs = recorded_mark(*recorded.find("logits"));
  const double limit = (kTensorTolerance + kFloorTolerance) * theirs.norm;
  expect_near(mark_of(values), theirs, limit, "logits");
  for (const io::Tree& sample : recorded.find("logit_samples")->items) {
    size_t place = 0;
    for (size_t axis = 0; axis < logits.shape.size(); ++axis) {
      const int64_t index = sample.find("index")->items.at(axis).integer;
      place = place * static_cast<size_t>(logits.shape[axis]) + static_cast<size_t>(index);
    }
    // One element's share of the bound on the whole tensor.
    EXPECT_NEAR(values.at(place), sample.find("value")->number,
                10 * limit / std::sqrt(static_cast<double>(values.size())))
        << "logit " << place;
  }
}

/// Ten losses and norms from the events, everything else from the first step's dump.
void expect_as_recorded(const io::Tree& recorded, const std::string& environment) {
  SCOPED_TRACE(recorded.find("name")->text + " " + environment);
  const Folder folder;
  folder.write("tokens.npy", npy(recorded.find("rows")->items));
  folder.write("run.yaml", run_file_of(recorded));
  const Outcome outcome = folder.run("train run.yaml --json", environment);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_tensors(under(read_tensors(folder.read("dump/step-000000.safetensors")), "param."),
                 *recorded.find("initial"), kStartTolerance, 0, "initial, stale recording?");

  const std::vector<io::Tree> steps = step_events(outcome.out);
  const auto& losses = recorded.find("losses")->items;
  const auto& norms = recorded.find("grad_norms")->items;
  ASSERT_EQ(steps.size(), losses.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string step = " of step " + std::to_string(i + 1);
    expect_relative(steps[i].find("loss")->number, losses[i].number, kLossTolerance, "loss" + step);
    expect_relative(steps[i].find("grad_norm")->number, norms[i].number, kTensorTolerance, "norm" + step);
  }

  const Tensors dump = read_tensors(folder.read("dump/step-000001.safetensors"));
  ASSERT_TRUE(dump.contains("loss"));
  expect_relative(dump.at("loss").values().at(0), losses[0].number, kLossTolerance, "dumped loss");
  expect_logits(dump, recorded);
  expect_tensors(under(dump, "grad."), *recorded.find("gradients"), kTensorTolerance, kFloorTolerance,
                 "gradient");
}

/// The recorded cases on one instruction set; a machine without it takes the best that it has.
class Recorded : public testing::TestWithParam<const char*> {};

TEST_P(Recorded, StepsAreAsInPyTorch) {
  std::ifstream file(PLIMSOLL_TEST_DIR "/e2e/recorded/torch.json", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto recording = io::parse_json(text);
  ASSERT_TRUE(recording) << recording.error().message();
  const auto& cases = recording->find("cases")->items;
  EXPECT_GE(cases.size(), 5U);
  for (const io::Tree& recorded : cases)
    expect_as_recorded(recorded, std::string("PLIMSOLL_ISA=") + GetParam());
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, Recorded, testing::Values("portable", "avx2", "avx512"),
                         [](const auto& set) { return std::string(set.param); });

TEST(Marks, TellPermutationsApart) {
  const Mark mark = mark_of({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(mark.norm, std::sqrt(30.0));
  EXPECT_DOUBLE_EQ(mark.projection, (1 - 2 + 3 - 4) / 2.0);  // 2654435761 * {0, 1, 2, 3} mod 2^32
  EXPECT_NE(mark_of({2, 1, 3, 4}).projection, mark.projection);
}

}  // namespace
}  // namespace plimsoll::e2e
