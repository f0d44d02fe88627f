// Answers to questions from a text: transformers' …ForQuestionAnswering. An example is a window (corpora's
// question.h): the question, and a part of the text; the loss is of the tokens where its answer begins and
// ends. Windows that do not hold the answer have both on their first token. Devlin et al. 2018,
// arXiv:1810.04805, 4.2 and 4.3.
#include "tasks/question_answering.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/classifier.h"
#include "models/language_model.h"
#include "ops/loss.h"
#include "ops/pointwise.h"
#include "ops/strided.h"
#include "ops/structure.h"
#include "tasks/labelled_source.h"
#include "tasks/task_list.h"

namespace plimsoll::tasks {
namespace {

/// The order of the inputs; types are there where the model has several.
struct WindowInput {
  static constexpr size_t kTokens = 0, kDocStart = 1, kPadding = 2, kSpans = 3, kTypes = 4;
};

class WindowSource final : public LabelledExamples {
 public:
  WindowSource(corpora::LabelledDataset data, bool has_types)
      : LabelledExamples(std::move(data)), has_types_(has_types) {}
  Result<datasets::ExampleCounts> read(int64_t index, datasets::ExampleRow row,
                                       std::span<std::byte> scratch) const override {
    std::array<float, 2> label = {};
    int32_t last = 0;
    const WindowRow window = WindowRow::of(row, has_types_);
    PLIMSOLL_ASSIGN(const int64_t tokens,
                    data_.read(index, {window.tokens, &last, label, window.types}, scratch));
    window.set_length(tokens);
    std::ranges::transform(label, window.spans.begin(),
                           [](float place) { return static_cast<int32_t>(place); });
    return datasets::ExampleCounts{tokens, std::ssize(window.spans)};
  }

 private:
  bool has_types_;
};

class QuestionAnswering final : public Task {
 public:
  QuestionAnswering(io::Labels labels, int64_t num_token_types, const TokenSizes& sizes)
      : labels_(std::move(labels)), num_token_types_(num_token_types), sizes_(sizes) {
    inputs_.push_back(datasets::token_tensor("tokens", 0));
    inputs_.push_back(datasets::token_tensor("doc_start", 0, datasets::Padding::kIndex));
    inputs_.push_back({.name = "padding",
                       .dtype = ir::DType::kF32,
                       .shape = {1},
                       .length_axis = 0,
                       .padding_bits = datasets::element_bits(kNowhere)});
    inputs_.push_back(
        {.name = "spans", .shape = {2}, .padding_bits = datasets::element_bits(ops::kIgnoreTarget)});
    if (has_types()) inputs_.push_back(datasets::token_tensor("token_types", 0));
  }
  [[nodiscard]] Unit unit() const override { return kTokens; }
  [[nodiscard]] std::string_view loss_unit() const override { return "positions"; }

  Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                  const LossOperands& operands) const override {
    const ir::ValueId values = values_of(b, model, inputs, operands);
    const auto scope = b.scope("spans");
    const ir::ValueId loss =
        ops::cross_entropy(b, values, inputs[WindowInput::kSpans], operands.grad_scale, operands.acc).loss;
    return {loss, operands.logits ? values : ir::ValueId{}};
  }
  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override {
    return values_of(b, model, inputs, {});
  }
  [[nodiscard]] ir::Shape logits_shape(int64_t batch) const override { return {batch, 2, sizes_.longest}; }

  Result<std::unique_ptr<datasets::ExampleSource>> open_source(
      const datasets::DataFiles& files, const datasets::SourceOptions& options) const override {
    PLIMSOLL_ASSIGN(
        corpora::LabelledDataset data,
        corpora::LabelledDataset::open(files.paths, {.sequence_length = options.pack.sequence_length,
                                                     .vocab_size = sizes_.vocab_size,
                                                     .token_types = has_types(),
                                                     .labels = labels_,
                                                     .setting = options.setting}));
    return std::unique_ptr<datasets::ExampleSource>(
        std::make_unique<WindowSource>(std::move(data), has_types()));
  }

  [[nodiscard]] bool has_metrics() const override { return true; }
  [[nodiscard]] std::unique_ptr<metrics::Metrics> make_metrics(int64_t /*max_examples*/) const override {
    return metrics::token_spans(sizes_.longest);
  }
  [[nodiscard]] int64_t metrics_bytes(int64_t /*max_examples*/) const override { return 0; }
  void add_to(metrics::Metrics& metrics, std::span<const float> outputs,
              datasets::ExampleRow row) const override {
    const std::span<const int32_t> spans = datasets::row_as<const int32_t>(row[WindowInput::kSpans]);
    const std::array label = {static_cast<float>(spans[0]), static_cast<float>(spans[1])};
    metrics.add(outputs, label);
  }

  [[nodiscard]] datasets::ExampleCounts drawn_counts() const override { return {sizes_.longest, 2}; }
  void draw(uint64_t seed, datasets::ExampleRow row) const override {
    const auto below = [&](int64_t end) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      return static_cast<int32_t>((seed >> 33) % static_cast<uint64_t>(end));
    };
    const WindowRow window = WindowRow::of(row, has_types());
    for (int32_t& token : window.tokens) token = below(sizes_.vocab_size);
    for (int32_t& type : window.types) type = below(num_token_types_);
    window.set_length(std::ssize(window.tokens));
    for (int32_t& place : window.spans) place = below(std::ssize(window.tokens));
  }

 private:
  [[nodiscard]] bool has_types() const { return num_token_types_ > 1; }
  /// [batch, 2, length]: begins and ends, with padding far below.
  ir::ValueId values_of(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                        const LossOperands& operands) const {
    models::Forward forward{.tokens = inputs[WindowInput::kTokens],
                            .doc_start = inputs[WindowInput::kDocStart],
                            .training = operands.training,
                            .random = operands.random};
    if (has_types()) forward.token_types = inputs[WindowInput::kTypes];
    const ir::ValueId values = models::language_model(model).span_logits(b, forward);
    const auto scope = b.scope("spans");
    const ir::Shape shape = b.type(values).shape;
    const ir::ValueId padding =
        ops::reshape(b, inputs[WindowInput::kPadding], {shape.dim(0), 1, shape.dim(1)});
    return ops::pointwise(b, "add(x0,x1)", {ops::permute(b, values, {0, 2, 1}), padding});
  }

  const io::Labels labels_;
  const int64_t num_token_types_;
  const TokenSizes sizes_;
};

Result<std::unique_ptr<Task>> make_answering(const TaskInputs& inputs) {
  const models::LanguageModel& model = models::language_model(inputs.model);
  return std::unique_ptr<Task>(std::make_unique<QuestionAnswering>(
      *inputs.labels, model.num_token_types(),
      TokenSizes{.vocab_size = model.vocab_size(), .longest = inputs.sequence_length}));
}

Status check_answering(const io::ConfigJson& model) {
  if (models::is_encoder(model)) return Ok{};
  return Error{ErrorCode::kInvalidArgument, "task is question_answering, and the model is no encoder of text",
               model.source(), "name a BERT, RoBERTa or DistilBERT"};
}

/// data.packing: pad is what one window a row means.
constexpr std::array<std::string_view, 4> kAnswerSettings = {"data.sequence_length", "data.packing",
                                                             "data.tokenizer", "qa."};

}  // namespace

WindowRow WindowRow::of(datasets::ExampleRow row, bool has_types) {
  WindowRow parts{.tokens = datasets::row_as<int32_t>(row[WindowInput::kTokens]),
                  .doc_start = datasets::row_as<int32_t>(row[WindowInput::kDocStart]),
                  .padding = datasets::row_as<float>(row[WindowInput::kPadding]),
                  .spans = datasets::row_as<int32_t>(row[WindowInput::kSpans])};
  if (has_types) parts.types = datasets::row_as<int32_t>(row[WindowInput::kTypes]);
  return parts;
}

void WindowRow::set_length(int64_t count) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_padding = static_cast<int64_t>(i) >= count;
    doc_start[i] = is_padding ? static_cast<int32_t>(i) : 0;
    padding[i] = is_padding ? kNowhere : 0.0F;
  }
}

const TaskDef& question_answering() {
  static constexpr TaskDef kDef = {.name = "question_answering",
                                   .trains = "model that answers questions from a text",
                                   .pipeline = "question-answering",
                                   .preparation = Preparation::kLabelled,
                                   .make = make_answering,
                                   .asks = true,
                                   .is_made_for = io::is_question_answering,
                                   .check = check_answering,
                                   .adapt = models::as_question_answering,
                                   .settings = kAnswerSettings};
  return kDef;
}

}  // namespace plimsoll::tasks
