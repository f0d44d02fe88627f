// Plans, trains ten steps and checks what the interface promises; says what is wrong and exits with 1.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "model.h"

namespace pl = plimsoll;

namespace {

int failures = 0;
void expect(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "not so: %s\n", what);
  ++failures;
}

/// What the error of that kind says, and what it advises.
template <class Function>
std::string error_of(pl::ErrorKind kind, Function function) {
  try {
    function();
  } catch (const pl::Error& error) {
    expect(error.kind() == kind, error.what());
    return std::string(error.what()) + " / " + error.hint();
  }
  expect(false, "there is an error");
  return {};
}

pl::Plan plan_of(Net& net, pl::Budget budget) {
  return pl::plan(
      {.inputs = {{"ids", pl::i32, {2, 16}}, {"labels", pl::i32, {2, 16}}},
       .loss = [&](pl::Inputs in) { return pl::cross_entropy(net.forward(in["ids"]), in["labels"]); },
       .optimizer = pl::AdamW{.lr = 1e-2, .weight_decay = 0.1}.group("norm|bias", {.weight_decay = 0.0}),
       .clip_norm = 1.0,
       .memory_budget = budget});
}

void budgets(Net& net) {
  const pl::Plan small = plan_of(net, 100000);
  expect(!small.fits(), "100,000 bytes do not fit");
  int64_t least = 0;
  try {
    const pl::Session session(small);
  } catch (const pl::DoesNotFit& error) {
    least = error.least_bytes();
    expect(*error.what() != 0, "the error has a text");
  }
  expect(least > 100000, "the least budget is told");
  expect(plan_of(net, least).fits(), "the least budget fits");
  expect(!plan_of(net, least - 1).fits(), "one byte less does not");
  const std::string wrong = error_of(pl::ErrorKind::invalid_argument, [&] { (void)plan_of(net, "4 gigs"); });
  expect(wrong.find("memory_budget") != std::string::npos && wrong.find("memory.budget") == std::string::npos,
         "errors name the options");
}

/// A run file's plan is that of the program; no session is made of it.
void run_files(const std::string& folder) {
  std::ofstream(folder + "/config.json")
      << R"({"model_type": "llama", "vocab_size": 256, "hidden_size": 32, "intermediate_size": 64,)"
      << R"("num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64})";
  std::ofstream(folder + "/rows.txt") << std::string(4096, 'a');
  std::ofstream(folder + "/run.yaml")
      << "model: {path: " << folder << ", init: random}\ndata: {train: " << folder
      << "/rows.txt, sequence_length: 32}\ntraining: {global_batch_size: 4, max_steps: 2}\noutput: {dir: "
      << folder << "/out}\n";
  const pl::Plan plan = pl::plan(folder + "/run.yaml");
  expect(plan.fits() && plan.peak_bytes() > 0, "the plan of a run file");
  expect(!pl::plan(folder + "/run.yaml", {"memory.budget=1MiB"}).fits(), "the overrides hold");
  error_of(pl::ErrorKind::invalid_argument, [&] { const pl::Session session(plan); });
  error_of(pl::ErrorKind::invalid_argument, [&] { (void)pl::plan(folder + "/no.yaml"); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "saved";
  Net net;
  const pl::Plan plan = plan_of(net, "1GiB");
  const pl::Plan copy = plan;
  expect(copy.fits() && copy.peak_bytes() > 0 && copy.seconds() > 0, "a plan that fits");
  expect(plan.table().find("parameters") != std::string::npos, "the table names the parameters");
  expect(plan.classes().at("optimizer_state") > 0, "classes of bytes");

  std::vector<int32_t> ids(64), labels(64);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>(i * 37 % 256), labels[i] = (ids[i] + 1) % 256;
  const pl::Batch batch{{"ids", pl::array(ids.data(), {2, 16})},
                        {"labels", pl::array(labels.data(), {2, 16})}};
  const pl::Batch twice{{"ids", pl::array(ids.data(), {4, 16})},
                        {"labels", pl::array(labels.data(), {4, 16})}};

  pl::Session session(plan, {.seed = 42});
  expect(session.names().front() == "tokens.weight", "names in order");
  expect(session.read("layers.4.up.weight").size() == 160 * 64, "a parameter in the last layer");
  const double before = session.evaluate(batch);
  expect(session.gradients(batch).at("layers.0.norm.weight").size() == 64, "a gradient");
  pl::Step step;
  for (int i = 0; i < 10; ++i)
    step = session.step(batch, {.lr = pl::cosine(session.steps(), 20, 1e-2, {.warmup = 2})});
  expect(step.index == 10 && step.loss < before && step.grad_norm > 0, "ten steps lower the loss");
  session.save(folder);
  step = session.step(twice, {.lr = 1e-3, .accumulate = 2});

  pl::Session other(plan, {.resume = folder});
  expect(other.steps() == 10, "it continues behind step 10");
  const pl::Step again = other.step(twice, {.lr = 1e-3, .accumulate = 2});
  expect(again.loss == step.loss && other.read("head.weight") == session.read("head.weight"), "bit for bit");
  std::vector<float> zeros(64, 0.0F);
  other.write("norm.weight", zeros);
  expect(other.read("norm.weight") == zeros, "what was written");

  using Kind = pl::ErrorKind;
  expect(error_of(Kind::invalid_argument, [&] { (void)other.read("head.wait"); }).find("head.weight") !=
             std::string::npos,
         "the nearest name");
  const pl::Batch without{{"ids", pl::array(ids.data(), {2, 16})}};
  expect(error_of(Kind::invalid_argument, [&] { other.step(without); }).find("labels") != std::string::npos,
         "the missing key");
  pl::Batch few{{"labels", pl::array(labels.data(), {2, 16})}};
  few.add("ids", std::make_shared<const pl::Tensor>(std::vector<int32_t>{1, 2, 3}, pl::Shape{2, 16}));
  expect(error_of(Kind::invalid_argument, [&] { other.step(few); }).find("\"ids\"") != std::string::npos,
         "a tensor with fewer values than its shape has");
  error_of(Kind::invalid_argument, [&] { (void)pl::plan({.inputs = {{"x", pl::f32, {2, 2}}}}); });
  error_of(Kind::invalid_argument, [&] { (void)net.forward(pl::Value()); });
  error_of(Kind::io, [&] { other.load(folder + "/nowhere"); });
  budgets(net);
  run_files(folder);
  if (failures == 0) std::puts("ok");
  return failures == 0 ? 0 : 1;
}
