// Tasks: their inputs, losses against the formulas, metrics from rows.
#include "tasks/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/reference/interpreter.h"
#include "models/classifier.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "tasks/sequence_classification.h"

namespace plimsoll::tasks {
namespace {

using testing::ElementsAre;
using enum io::ProblemType;

const char* const kConfig =
    R"({"model_type": "gpt2", "vocab_size": 31, "n_positions": 16, "n_embd": 12, "n_head": 2, "n_layer": 1})";

io::Labels labels_of(io::ProblemType problem, int64_t count) {
  return {problem, io::default_label_names(count)};
}

std::unique_ptr<models::Model> model_of(const io::Labels* labels = nullptr) {
  const auto causal = io::parse_config_json(kConfig, "config.json");
  const auto config = labels == nullptr ? causal : models::as_classifier(*causal, *labels);
  return *models::make_model(*config);
}

ir::RefTensor values(ir::DType dtype, ir::Shape shape, std::vector<double> data) {
  return reference::tensor({dtype, shape}, std::move(data));
}

struct Evaluated {
  double loss = 0;
  ir::RefTensor logits;
};

/// The task's forward pass in double precision, on weights that depend on the element alone.
Evaluated evaluate(const Task& task, const models::Model& model, const std::vector<ir::RefTensor>& data) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  reference::Interpreter interpreter;
  std::vector<ir::ValueId> inputs;
  for (size_t i = 0; i < task.inputs().size(); ++i) {
    const std::string name = "batch." + task.inputs()[i].name;
    interpreter.set(name, data[i]);
    inputs.push_back(b.state({name, data[i].type, ir::StateClass::kInput}));
  }
  const auto scalar = [&](const char* name, double value) {
    interpreter.set(name, values(ir::DType::kF32, {1}, {value}));
    return b.state({name, {ir::DType::kF32, {1}}, ir::StateClass::kScalars});
  };
  const Outputs outputs = task.forward(
      b, model, inputs, {.grad_scale = scalar("scale", 1), .acc = scalar("acc", 10), .logits = true});
  for (const models::Parameter& p : model.parameters()) {
    ir::RefTensor w = reference::constant({ir::DType::kF32, p.shape}, 0);
    for (size_t i = 0; i < w.data.size(); ++i) w.data[i] = std::sin(static_cast<double>(i) * 0.7 + 1) / 2;
    interpreter.set(p.name, w);
  }
  for (const Status& status : {b.status(), interpreter.run(graph)})
    PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message());
  const ir::RefTensor logits = interpreter.value(outputs.logits);
  EXPECT_EQ(logits.type.shape, task.logits_shape(data[0].type.shape.dim(0)));
  return {interpreter.value(outputs.loss).data[0], logits};
}

constexpr SequenceRows kEncoderRows = {.doc_start = true, .num_token_types = 2};

const ir::RefTensor kTokens = values(ir::DType::kI32, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
const ir::RefTensor kLast = values(ir::DType::kI32, {3}, {3, 0, 2});

TEST(Task, SingleLabelsHaveCrossEntropy) {
  const io::Labels labels = labels_of(kSingleLabel, 5);
  const auto task = make_sequence_classification(labels);
  const auto e =
      evaluate(*task, *model_of(&labels), {kTokens, kLast, values(ir::DType::kI32, {3}, {4, -100, 0})});
  double expected = 10;
  for (const size_t row : {0, 2}) {
    double sum = 0;
    for (size_t i = 0; i < 5; ++i) sum += std::exp(e.logits.data[row * 5 + i]);
    expected += std::log(sum) - e.logits.data[row * 5 + (row == 0 ? 4 : 0)];
  }
  EXPECT_NEAR(e.loss, expected, 1e-12);
}

TEST(Task, MultiLabelsHaveBinaryCrossEntropyAndNumbersSquaredError) {
  const std::vector<double> truth = {1, 0, 1, NAN, NAN, NAN, 0, 0, 1};
  for (const io::ProblemType problem : {kMultiLabel, kRegression}) {
    const io::Labels labels = labels_of(problem, 3);
    const auto task = make_sequence_classification(labels);
    const auto e =
        evaluate(*task, *model_of(&labels), {kTokens, kLast, values(ir::DType::kF32, {3, 3}, truth)});
    double expected = 10;
    for (size_t i = 0; i < 9; ++i) {
      if (i / 3 == 1) continue;  // a row without an example
      const double x = e.logits.data[i], p = 1 / (1 + std::exp(-x));
      expected += (problem == kRegression ? (x - truth[i]) * (x - truth[i])
                   : truth[i] > 0         ? -std::log(p)
                                          : -std::log(1 - p)) /
                  3;
    }
    EXPECT_NEAR(e.loss, expected, 1e-10);
  }
}

TEST(Task, LanguageModelsHaveTheirTargets) {
  const auto task = make_causal_lm(/*documents=*/false, {.vocab_size = 31, .longest = 4});
  const auto model = model_of();
  const ir::RefTensor targets =
      values(ir::DType::kI32, {3, 4}, {2, 3, 4, -100, 6, 7, 8, -100, 10, 11, 12, -100});
  const auto e = evaluate(*task, *model, {kTokens, targets});
  EXPECT_GT(e.loss, 10 + 9 * 0.1);
  EXPECT_EQ(make_causal_lm(true)->inputs().size(), 3U);
}

TEST(Task, InputsHaveTheirShapes) {
  const auto shapes = [](const Task& task) {
    std::vector<ir::Shape> all;
    for (const datasets::TensorSpec& input : task.inputs()) all.push_back(input.batch_type(6, 9).shape);
    return all;
  };
  EXPECT_THAT(shapes(*make_causal_lm(true)), ElementsAre(ir::Shape{6, 9}, ir::Shape{6, 9}, ir::Shape{6, 9}));
  EXPECT_THAT(shapes(*make_sequence_classification(labels_of(kSingleLabel, 4))),
              ElementsAre(ir::Shape{6, 9}, ir::Shape{6}, ir::Shape{6}));
  EXPECT_THAT(shapes(*make_sequence_classification(labels_of(kRegression, 1))),
              ElementsAre(ir::Shape{6, 9}, ir::Shape{6}, ir::Shape{6, 1}));
  EXPECT_THAT(shapes(*make_sequence_classification(labels_of(kSingleLabel, 4), {}, {}, kEncoderRows)),
              ElementsAre(ir::Shape{6, 9}, ir::Shape{6}, ir::Shape{6}, ir::Shape{6, 9}, ir::Shape{6, 9}));
  EXPECT_EQ(make_sequence_classification(labels_of(kSingleLabel, 4), {}, {},
                                         {.doc_start = true, .num_token_types = 1})
                ->inputs()
                .back()
                .name,
            "doc_start")
      << "one type needs no input";
}

/// Memory for one example of each input.
struct Row {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::span<std::byte>> spans;
  Row(const Task& task, int64_t length) {
    for (const datasets::TensorSpec& tensor : task.inputs())
      memory.emplace_back(static_cast<size_t>(tensor.example_bytes(length)));
    for (auto& bytes : memory) spans.emplace_back(bytes);
  }
};

TEST(Task, PaddingCountsNowhere) {
  const auto padded = [](const Task& task, size_t input) {
    Row row(task, 3);
    datasets::pad_example(task.inputs()[input], row.spans[input]);
    return row;
  };
  const auto causal = make_causal_lm(true);
  EXPECT_THAT(datasets::row_as<int32_t>(padded(*causal, 1).spans[1]), ElementsAre(-100, -100, -100));
  EXPECT_THAT(datasets::row_as<int32_t>(padded(*causal, 2).spans[2]), ElementsAre(0, 1, 2));
  const auto single = make_sequence_classification(labels_of(kSingleLabel, 2));
  EXPECT_THAT(datasets::row_as<int32_t>(padded(*single, 2).spans[2]), ElementsAre(ops::kIgnoreTarget));
  const auto encoder = make_sequence_classification(labels_of(kSingleLabel, 2), {}, {}, kEncoderRows);
  EXPECT_THAT(datasets::row_as<int32_t>(padded(*encoder, 3).spans[3]), ElementsAre(0, 1, 2));
  EXPECT_THAT(datasets::row_as<int32_t>(padded(*encoder, 4).spans[4]), ElementsAre(0, 0, 0));
  const auto multi = make_sequence_classification(labels_of(kMultiLabel, 2));
  EXPECT_FALSE(ops::has_labels(datasets::row_as<float>(padded(*multi, 2).spans[2])[0]));
}

TEST(Task, ColumnsOfPaddingAreDocumentsOfTheirOwn) {
  const auto task = make_sequence_classification(labels_of(kSingleLabel, 2), {}, {}, kEncoderRows);
  Row row(*task, 5);
  const SequenceRow parts = SequenceRow::of(row.spans, kEncoderRows);
  EXPECT_EQ(parts.types.data(), datasets::row_as<int32_t>(row.spans[4]).data());
  parts.set_length(3);
  EXPECT_EQ(*parts.last, 2);
  EXPECT_THAT(parts.doc_start, ElementsAre(0, 0, 0, 3, 4));
  parts.set_length(0);
  EXPECT_EQ(*parts.last, 0);
  EXPECT_THAT(parts.doc_start, ElementsAre(0, 1, 2, 3, 4));
  const auto decoder = make_sequence_classification(labels_of(kSingleLabel, 2));
  Row plain(*decoder, 5);
  EXPECT_TRUE(SequenceRow::of(plain.spans, {}).doc_start.empty());
}

TEST(Task, MetricsReadLabelsFromRows) {
  const auto single = make_sequence_classification(labels_of(kSingleLabel, 3));
  Row row(*single, 4);
  datasets::row_as<int32_t>(row.spans[2])[0] = 2;
  const auto classes = single->make_metrics(10);
  single->add_to(*classes, std::vector<float>{0, 1, 2}, row.spans);
  EXPECT_EQ(classes->values()[0].value, 1);
  const auto regression = make_sequence_classification(labels_of(kRegression, 2));
  Row numbers(*regression, 4);
  datasets::row_as<float>(numbers.spans[2])[1] = 3;
  const auto mse = regression->make_metrics(10);
  regression->add_to(*mse, std::vector<float>{0, 1}, numbers.spans);
  EXPECT_EQ(mse->values()[0].value, 2);
  EXPECT_EQ(make_causal_lm(false)->make_metrics(10), nullptr);
}

TEST(Task, DrawsWhatTheModelTakes) {
  const TokenSizes sizes{.vocab_size = 31, .longest = 8};
  for (const auto& task :
       {make_causal_lm(true, sizes), make_sequence_classification(labels_of(kSingleLabel, 3), {}, sizes),
        make_sequence_classification(labels_of(kMultiLabel, 3), {}, sizes),
        make_sequence_classification(labels_of(kSingleLabel, 3), {}, sizes, kEncoderRows)}) {
    Row row(*task, 8), same(*task, 8);
    task->draw(5, row.spans);
    task->draw(5, same.spans);
    EXPECT_EQ(row.memory, same.memory);
    EXPECT_EQ(task->drawn_counts().units, 8);
    EXPECT_EQ(task->unit().name, "tokens");
    for (const int32_t token : datasets::row_as<int32_t>(row.spans[0])) EXPECT_TRUE(token >= 0 && token < 31);
    if (row.spans.size() < 5) continue;
    for (const int32_t start : datasets::row_as<int32_t>(row.spans[3])) EXPECT_EQ(start, 0);
    for (const int32_t type : datasets::row_as<int32_t>(row.spans[4])) EXPECT_TRUE(type >= 0 && type < 2);
  }
}

}  // namespace
}  // namespace plimsoll::tasks
