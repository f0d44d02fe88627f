// Answers from a text as a task: its inputs, the loss against the formula over the tokens of each window,
// what padding leaves as it is, and what its source reads of windows.
#include "tasks/question_answering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "backends/reference/interpreter.h"
#include "corpora/labelled/labelled_files.h"
#include "models/language_model.h"
#include "ops/loss.h"
#include "ops/op_list.h"
#include "tasks/task_list.h"

namespace plimsoll::tasks {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kWords = 100;  ///< as labelled_shard has it
const io::Labels kSpanLabels = {io::ProblemType::kRegression, {"begin", "end"}};

/// Windows of some lengths, in rows of `length` tokens, as the sources fill them; the rows' memory.
struct WindowBatch {
  std::vector<std::vector<std::vector<std::byte>>> memory;  ///< of each window, of each input
  std::vector<int64_t> lengths;

  WindowBatch(const Task& task, std::vector<int64_t> counts, int64_t length) : lengths(std::move(counts)) {
    for (size_t w = 0; w < lengths.size(); ++w) {
      auto& parts = memory.emplace_back();
      for (const datasets::TensorSpec& input : task.inputs())
        parts.emplace_back(static_cast<size_t>(input.example_bytes(length)), std::byte{0x5A});
      const WindowRow row = WindowRow::of(this->row(w), task.inputs().size() > 4);
      for (size_t i = 0; i < row.tokens.size(); ++i) {
        const bool is_padding = static_cast<int64_t>(i) >= lengths[w];
        // Padding depends on the row's length, so that it would show.
        row.tokens[i] =
            static_cast<int32_t>((w * 13 + i * 7 + (is_padding ? row.tokens.size() : 3)) % kWords);
        if (!row.types.empty()) row.types[i] = is_padding ? 0 : static_cast<int32_t>(i % 2);
      }
      row.set_length(lengths[w]);
      row.spans[0] = static_cast<int32_t>((w + 1) % static_cast<size_t>(lengths[w]));
      row.spans[1] = static_cast<int32_t>(lengths[w] - 1);
    }
  }
  [[nodiscard]] std::vector<std::span<std::byte>> row(size_t window) {
    std::vector<std::span<std::byte>> parts;
    for (auto& part : memory[window]) parts.emplace_back(part);
    return parts;
  }
};

struct Answers {
  double loss = 0;
  std::vector<double> logits, plain;  ///< with the loss, and from Task::logits
};

class AnsweringTask : public testing::Test {
 protected:
  static std::unique_ptr<models::Model> model_of(int64_t num_types) {
    const auto config = io::parse_config_json(
        R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"], "vocab_size": 100,
            "hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
            "max_position_embeddings": 32, "type_vocab_size": )" +
            std::to_string(num_types) + "}",
        "config.json");
    auto model = models::make_model(*config);
    PLIMSOLL_CHECK(model.ok(), model ? "" : model.error().message());
    return std::move(*model);
  }
  static std::unique_ptr<Task> task_of(const models::Model& model, int64_t longest) {
    const io::ConfigJson config = *io::parse_config_json("{}", "config.json");
    auto made = question_answering().make(
        {.model = model, .model_config = config, .sequence_length = longest, .labels = &kSpanLabels});
    EXPECT_TRUE(made) << (made ? "" : made.error().message());
    return std::move(*made);
  }

  /// In double precision, on weights that depend on the element alone.
  static Answers evaluate(const models::Model& model, const Task& task, WindowBatch batch, int64_t length) {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    reference::Interpreter interpreter;
    const auto count = static_cast<int64_t>(batch.lengths.size());
    std::vector<ir::ValueId> inputs;
    for (size_t t = 0; t < task.inputs().size(); ++t) {
      const datasets::TensorSpec& input = task.inputs()[t];
      std::vector<double> values;
      for (auto& parts : batch.memory) {
        if (input.dtype == ir::DType::kF32)
          std::ranges::copy(datasets::row_as<float>(parts[t]), std::back_inserter(values));
        else
          std::ranges::copy(datasets::row_as<int32_t>(parts[t]), std::back_inserter(values));
      }
      const ir::TensorType type = input.batch_type(count, length);
      interpreter.set("batch." + input.name, reference::tensor(type, values));
      inputs.push_back(b.state({"batch." + input.name, type, ir::StateClass::kInput}));
    }
    const auto scalar = [&](const char* name, double value) {
      interpreter.set(name, reference::tensor({ir::DType::kF32, {1}}, {value}));
      return b.state({name, {ir::DType::kF32, {1}}, ir::StateClass::kScalars});
    };
    for (const models::Parameter& p : model.parameters()) {
      ir::RefTensor w = reference::constant({ir::DType::kF32, p.shape}, 0);
      for (size_t i = 0; i < w.data.size(); ++i) w.data[i] = std::sin(static_cast<double>(i) * 0.7 + 1) / 2;
      interpreter.set(p.name, w);
    }
    const Outputs outputs = task.forward(
        b, model, inputs, {.grad_scale = scalar("scale", 1), .acc = scalar("acc", 10), .logits = true});
    const ir::ValueId plain = task.logits(b, model, inputs);
    for (const Status& status : {b.status(), interpreter.run(graph)})
      PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message());
    EXPECT_EQ(interpreter.value(outputs.logits).type.shape, (ir::Shape{count, 2, length}));
    return {interpreter.value(outputs.loss).data[0], interpreter.value(outputs.logits).data,
            interpreter.value(plain).data};
  }

  const std::unique_ptr<models::Model> model_ = model_of(2);
};

TEST_F(AnsweringTask, InputsHaveTheirShapesAndPadding) {
  const auto task = task_of(*model_, 16);
  std::vector<std::string> lines;
  for (const datasets::TensorSpec& input : task->inputs()) {
    const ir::TensorType type = input.batch_type(6, 9);
    lines.push_back(input.name + (type.dtype == ir::DType::kF32 ? " f32 " : " i32 ") + to_string(type.shape));
  }
  EXPECT_THAT(lines, ElementsAre("tokens i32 [6,9]", "doc_start i32 [6,9]", "padding f32 [6,9]",
                                 "spans i32 [6,2]", "token_types i32 [6,9]"));
  EXPECT_EQ(task_of(*model_of(1), 16)->inputs().size(), 4U) << "one type needs no input";
  EXPECT_EQ(task->logits_shape(6), (ir::Shape{6, 2, 16}));
  EXPECT_EQ(task->unit().name, "tokens");
  EXPECT_EQ(task->loss_unit(), "positions");
  EXPECT_TRUE(task->has_metrics());
  EXPECT_FALSE(task->has_perplexity());
  std::vector<int32_t> ids(3, -7);
  const auto padded = [&](size_t input) {
    datasets::pad_example(task->inputs()[input], std::as_writable_bytes(std::span(ids)));
    return ids;
  };
  EXPECT_THAT(padded(0), Each(0));
  EXPECT_THAT(padded(1), ElementsAre(0, 1, 2)) << "documents of one token";
  EXPECT_THAT(padded(3), Each(ops::kIgnoreTarget));
  EXPECT_THAT(padded(4), Each(0));
  std::vector<float> values(3);
  datasets::pad_example(task->inputs()[2], std::as_writable_bytes(std::span(values)));
  EXPECT_THAT(values, Each(kNowhere));
}

TEST_F(AnsweringTask, RowsKnowWhatIsPadding) {
  const auto task = task_of(*model_, 16);
  WindowBatch batch(*task, {5}, 5);
  const auto parts = batch.row(0);
  const WindowRow row = WindowRow::of(parts, true);
  EXPECT_EQ(row.types.data(), datasets::row_as<int32_t>(parts[4]).data());
  row.set_length(3);
  EXPECT_THAT(row.doc_start, ElementsAre(0, 0, 0, 3, 4));
  EXPECT_THAT(row.padding, ElementsAre(0, 0, 0, kNowhere, kNowhere));
  row.set_length(5);
  EXPECT_THAT(row.doc_start, Each(0));
  EXPECT_THAT(row.padding, Each(0));
  EXPECT_TRUE(WindowRow::of(parts, false).types.empty());
}

/// For the begins and for the ends, each window's own tokens are the choice and no others.
TEST_F(AnsweringTask, HasCrossEntropyOverTheTokensOfEachWindow) {
  constexpr int64_t kLength = 9;
  const auto task = task_of(*model_, kLength);
  WindowBatch batch(*task, {9, 4, 1}, kLength);
  const Answers e = evaluate(*model_, *task, batch, kLength);
  EXPECT_EQ(e.plain, e.logits);
  double expected = 10;
  for (size_t w = 0; w < batch.lengths.size(); ++w) {
    const auto spans = WindowRow::of(batch.row(w), true).spans;
    for (size_t side = 0; side < 2; ++side) {
      const auto logits = std::span(e.logits).subspan((w * 2 + side) * kLength, kLength);
      const auto count = static_cast<size_t>(batch.lengths[w]);
      double sum = 0;
      for (size_t i = 0; i < count; ++i) sum += std::exp(logits[i]);
      expected += std::log(sum) - logits[static_cast<size_t>(spans[side])];
      for (size_t i = count; i < kLength; ++i) EXPECT_LT(logits[i], -1e29) << "padding";
      if (w < 2) {
        EXPECT_NE(logits[0], logits[1]);
      }
    }
  }
  EXPECT_NEAR(e.loss, expected, 1e-10);
  EXPECT_GT(e.loss, 11);
}

/// What the head says of each token: its row of begins, and its row of ends.
TEST_F(AnsweringTask, BeginsStandBeforeEnds) {
  const auto task = task_of(*model_, 7);
  WindowBatch batch(*task, {7, 7}, 7);
  const Answers e = evaluate(*model_, *task, batch, 7);
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  reference::Interpreter interpreter;
  const auto input = [&](const char* name, size_t tensor) {
    std::vector<double> values;
    for (auto& parts : batch.memory)
      std::ranges::copy(datasets::row_as<int32_t>(parts[tensor]), std::back_inserter(values));
    interpreter.set(name, reference::tensor({ir::DType::kI32, {2, 7}}, values));
    return b.state({name, {ir::DType::kI32, {2, 7}}, ir::StateClass::kInput});
  };
  const ir::ValueId head = models::language_model(*model_).span_logits(
      b, {.tokens = input("t", 0), .doc_start = input("d", 1), .token_types = input("y", 4)});
  for (const models::Parameter& p : model_->parameters()) {
    ir::RefTensor w = reference::constant({ir::DType::kF32, p.shape}, 0);
    for (size_t i = 0; i < w.data.size(); ++i) w.data[i] = std::sin(static_cast<double>(i) * 0.7 + 1) / 2;
    interpreter.set(p.name, w);
  }
  for (const Status& status : {b.status(), interpreter.run(graph)})
    ASSERT_TRUE(status.ok()) << (status ? "" : status.error().message());
  const std::vector<double>& both = interpreter.value(head).data;
  ASSERT_EQ(both.size(), e.logits.size());
  for (size_t w = 0; w < 2; ++w)
    for (size_t i = 0; i < 7; ++i)
      for (size_t side = 0; side < 2; ++side)
        EXPECT_EQ(e.logits[(w * 2 + side) * 7 + i], both[(w * 7 + i) * 2 + side]) << w << " " << i;
}

TEST_F(AnsweringTask, PaddingChangesNothing) {
  const std::vector<int64_t> lengths = {6, 3, 1};
  const auto narrow_task = task_of(*model_, 6), wide_task = task_of(*model_, 11);
  const Answers narrow = evaluate(*model_, *narrow_task, WindowBatch(*narrow_task, lengths, 6), 6),
                wide = evaluate(*model_, *wide_task, WindowBatch(*wide_task, lengths, 11), 11);
  EXPECT_EQ(narrow.loss, wide.loss);
  for (size_t w = 0; w < lengths.size(); ++w)
    for (size_t side = 0; side < 2; ++side)
      for (size_t i = 0; i < static_cast<size_t>(lengths[w]); ++i)
        EXPECT_EQ(narrow.logits[(w * 2 + side) * 6 + i], wide.logits[(w * 2 + side) * 11 + i])
            << "window " << w << ", token " << i;
}

/// A row that no window fills counts nowhere.
TEST_F(AnsweringTask, RowsWithoutAWindowHaveNoLoss) {
  const auto task = task_of(*model_, 6);
  WindowBatch with(*task, {6, 4}, 6), alone(*task, {6}, 6);
  const auto empty = with.row(1);
  for (size_t t = 0; t < empty.size(); ++t) datasets::pad_example(task->inputs()[t], empty[t]);
  const double loss = evaluate(*model_, *task, with, 6).loss;
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(loss, evaluate(*model_, *task, alone, 6).loss);
}

TEST_F(AnsweringTask, TypesCount) {
  const auto task = task_of(*model_, 6);
  WindowBatch batch(*task, {6}, 6), other = batch;
  WindowRow::of(other.row(0), true).types[2] = 1;
  EXPECT_NE(evaluate(*model_, *task, batch, 6).loss, evaluate(*model_, *task, other, 6).loss);
}

TEST_F(AnsweringTask, ReadsWindowsWithTheirAnswers) {
  const io::TemporaryFolder folder;
  const auto tokenizer = corpora::pairs_tokenizer();
  corpora::LabelledOptions options{
      .tokenizer = tokenizer.get(), .max_tokens = 8, .questions = corpora::QuestionOptions{.doc_stride = 1}};
  options.format.num_token_types = 2;
  const std::string path = corpora::labelled_shard(
      folder, "q",
      R"({"question": "q", "context": "cdefghijkl", "answers": {"text": ["gh"], "answer_start": [4]}})"
      "\n"
      R"({"question": "r", "context": "cd", "answers": {"text": [], "answer_start": []}})"
      "\n",
      options);
  const auto task = task_of(*model_, 8);
  datasets::SourceOptions how;
  how.pack.sequence_length = 8;
  const auto source = task->open_source({.paths = {path}}, how);
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ((*source)->num_examples(), 4);
  EXPECT_EQ((*source)->num_units(), 8 + 8 + 8 + 6);
  std::vector<std::byte> scratch(static_cast<size_t>((*source)->scratch_bytes()));
  const auto read = [&](int64_t index, int64_t length) {
    WindowBatch batch(*task, {1}, length);
    const auto counts = (*source)->read(index, batch.row(0), scratch);
    EXPECT_TRUE(counts) << (counts ? "" : counts.error().message());
    EXPECT_EQ(counts->targets, 2);
    EXPECT_EQ(counts->units, *(*source)->length(index, scratch));
    return batch;
  };
  WindowBatch middle = read(1, 8);
  const WindowRow row = WindowRow::of(middle.row(0), true);
  EXPECT_THAT(row.tokens, ElementsAre(29, 17, 30, 6, 7, 8, 9, 30));  // <s> q </s> f g h i </s>
  EXPECT_THAT(row.types, ElementsAre(0, 0, 0, 1, 1, 1, 1, 1));
  EXPECT_THAT(row.spans, ElementsAre(4, 5));
  EXPECT_THAT(row.doc_start, Each(0));
  WindowBatch last = read(3, 9);
  const WindowRow brief = WindowRow::of(last.row(0), true);
  EXPECT_THAT(brief.tokens, ElementsAre(29, 18, 30, 3, 4, 30, 0, 0, 0));
  EXPECT_THAT(brief.types, ElementsAre(0, 0, 0, 1, 1, 1, 0, 0, 0));
  EXPECT_THAT(brief.spans, ElementsAre(0, 0));
  EXPECT_THAT(brief.doc_start, ElementsAre(0, 0, 0, 0, 0, 0, 6, 7, 8));
  EXPECT_THAT(brief.padding, ElementsAre(0, 0, 0, 0, 0, 0, kNowhere, kNowhere, kNowhere));
}

TEST_F(AnsweringTask, IdsBeyondTheModelAreRefused) {
  const io::TemporaryFolder folder;
  const auto tokenizer = corpora::pairs_tokenizer();
  const std::string path =
      corpora::labelled_shard(folder, "q", R"({"question": "q", "context": "cd", "answers": []})",
                              {.tokenizer = tokenizer.get(),
                               .format = {.num_token_types = 2},
                               .max_tokens = 8,
                               .questions = corpora::QuestionOptions{.doc_stride = 1}});
  const auto config = io::parse_config_json(
      R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"], "vocab_size": 31,
          "hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
          "max_position_embeddings": 32, "type_vocab_size": 2})",
      "config.json");
  const auto small = *models::make_model(*config);
  datasets::SourceOptions how;
  how.pack.sequence_length = 8;
  const auto source = task_of(*small, 8)->open_source({.paths = {path}}, how);
  ASSERT_FALSE(source) << "the shard is of a vocabulary of 100";
  EXPECT_EQ(source.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(AnsweringTask, MetricsReadSpansFromRows) {
  const auto task = task_of(*model_, 5);
  const auto metrics = task->make_metrics(3);
  ASSERT_NE(metrics, nullptr);
  WindowBatch batch(*task, {5}, 5);
  const auto row = batch.row(0);
  const auto add = [&](int32_t begin, int32_t end) {
    const WindowRow parts = WindowRow::of(row, true);
    parts.spans[0] = begin, parts.spans[1] = end;
    task->add_to(*metrics, std::vector<float>{0, 9, 0, 0, 0, 0, 0, 0, 9, 0}, row);
  };
  add(1, 3);
  EXPECT_EQ(metrics->values()[0].value, 1);
  add(3, 1);
  EXPECT_EQ(metrics->values()[0].value, 0.5);
}

TEST_F(AnsweringTask, DrawsWhatTheModelTakes) {
  for (const int64_t types : {1, 2}) {
    const auto model = model_of(types);
    const auto task = task_of(*model, 16);
    EXPECT_EQ(task->drawn_counts().units, 16);
    EXPECT_EQ(task->drawn_counts().targets, 2);
    WindowBatch one(*task, {16}, 16), same(*task, {3}, 16), other(*task, {16}, 16);
    task->draw(5, one.row(0));
    task->draw(5, same.row(0));
    task->draw(6, other.row(0));
    EXPECT_EQ(one.memory, same.memory) << "all of it is written";
    EXPECT_NE(one.memory, other.memory);
    const WindowRow row = WindowRow::of(one.row(0), types > 1);
    for (const int32_t token : row.tokens) EXPECT_TRUE(token >= 0 && token < kWords);
    for (const int32_t type : row.types) EXPECT_TRUE(type >= 0 && type < types);
    for (const int32_t place : row.spans) EXPECT_TRUE(place >= 0 && place < 16);
    EXPECT_THAT(row.doc_start, Each(0));
    EXPECT_THAT(row.padding, Each(0));
    EXPECT_TRUE(std::isfinite(evaluate(*model, *task, one, 16).loss));
  }
}

TEST_F(AnsweringTask, IsForEncodersOfText) {
  const auto check = [](const char* model) {
    const Status status = question_answering().check(*io::parse_config_json(model, "config.json"));
    return status ? std::string() : status.error().message() + " | " + status.error().hint;
  };
  EXPECT_EQ(check(R"({"model_type": "camembert"})"), "");
  EXPECT_EQ(check(R"({"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"]})"), "");
  for (const char* other : {R"({"model_type": "llama"})", R"({"model_type": "vit"})"})
    EXPECT_THAT(check(other), testing::AllOf(HasSubstr("the model is no encoder of text: config.json"),
                                             HasSubstr("| name a BERT")));
}

}  // namespace
}  // namespace plimsoll::tasks
