// What holds for every family of encoders, by its sample: its head reads the first token, every token sees
// all others of its sequence and no padding, and scores are what the interpreter computes.
#include "models/text_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>

#include "changed_config.h"
#include "encoder_forward.h"
#include "models/classifier.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class EncoderTest : public testing::TestWithParam<const Family*> {
 protected:
  [[nodiscard]] static std::unique_ptr<LanguageModel> sample(const char* changes = "{}") {
    return model_of(io::to_json(changed(GetParam()->sample, changes).fields()));
  }
  /// What files call the masked head's tensors, and the norm's epsilon.
  struct MaskedNames {
    std::string dense, norm, bias, table;
    double eps = 1e-12;
  };
  static MaskedNames masked_names() {
    if (GetParam()->model_type == "bert")
      return {"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
              "cls.predictions.bias", "cls.predictions.decoder.weight"};
    if (GetParam()->model_type == "distilbert")
      return {"vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "vocab_projector.weight"};
    return {"lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder.weight", 1e-5};
  }
  /// The sample as a model that answers questions.
  [[nodiscard]] static std::unique_ptr<LanguageModel> asked(const char* changes = "{}") {
    const auto config = as_question_answering(changed(GetParam()->sample, changes), {});
    PLIMSOLL_CHECK(config.ok(), config ? "" : config.error().message());
    return *make_language_model(*config);
  }
  /// Its graph: tokens, doc_start, token_types i32[batch, length] -> state "logits" [batch, length, 2].
  static ForwardGraph span_graph(const LanguageModel& model, int64_t batch, int64_t length) {
    ForwardGraph f;
    ir::Builder b(f.graph, ops::find_op);
    const auto input = [&](const char* name) {
      return b.state({name, {ir::DType::kI32, {batch, length}}, ir::StateClass::kInput});
    };
    Forward forward{.tokens = input("tokens"), .doc_start = input("doc_start")};
    if (model.num_token_types() > 0) forward.token_types = input("token_types");
    f.logits = model.span_logits(b, forward);
    PLIMSOLL_CHECK(b.status().ok(), b.status() ? "" : b.status().error().message());
    f.type = b.type(f.logits);
    f.graph.declare_state({"logits", f.type, ir::StateClass::kOutput});
    b.assign("logits", f.logits);
    return f;
  }
  static std::vector<float> spans_of(const LanguageModel& model, const PaddedBatch& batch,
                                     bool with_passes = true) {
    CpuForward forward(model, span_graph(model, batch.batch(), batch.length), with_passes);
    if (model.num_token_types() > 0) forward.write_ids("token_types", batch.token_types);
    return forward(batch.tokens, batch.doc_start);
  }
  /// The sample as a masked language model.
  [[nodiscard]] static std::unique_ptr<LanguageModel> masked() {
    const auto config = as_masked_lm(changed(GetParam()->sample, "{}"), {});
    PLIMSOLL_CHECK(config.ok(), config ? "" : config.error().message());
    return *make_language_model(*config);
  }
};

/// The families that TextEncoderConfig describes.
class TextEncoderTest : public EncoderTest {};

TEST_P(EncoderTest, ItsSampleIsAModelOfIt) {
  EXPECT_TRUE(is_encoder_family(*GetParam()));
  const auto model = sample();
  EXPECT_TRUE(model->is_bidirectional());
  EXPECT_TRUE(model->unknown_fields().empty());
  EXPECT_EQ(model->vocab_size(), 211);
  EXPECT_EQ(model->num_labels(), 5);
  expect_views_cover(*model);
  for (const Parameter& p : model->parameters()) {
    EXPECT_EQ(p.kind == ParameterKind::kVector, p.shape.rank() == 1) << p.name;
    // ModernBERT's heads share a part, which is of neither.
    const bool is_shared = GetParam() == &modernbert_family() && p.name.starts_with("head.");
    EXPECT_NE(model->is_of_head(p.name) || is_shared, p.name.starts_with(model->base_prefix())) << p.name;
    EXPECT_FALSE(model->ignores_tensor(p.name)) << p.name;
  }
}

TEST_P(EncoderTest, ItsSizesHaveTheNamesOfItsConfig) {
  const io::ConfigJson config = *io::parse_config_json(GetParam()->sample, "config.json");
  const SizeFields& f = GetParam()->fields;
  for (const FieldNames& names : {f.layers, f.hidden, f.heads, f.inner, f.positions, f.vocabulary})
    EXPECT_TRUE(std::ranges::any_of(names, [&](auto name) { return config.fields().find(name) != nullptr; }))
        << names[0];
}

TEST_P(EncoderTest, ComputesWhatTheInterpreterComputes) {
  const auto model = sample();
  const PaddedBatch batch = padded_batch(*model, {37, 1, 20}, 37);
  const std::vector<double> expected = interpret_encoder(*model, batch);
  ASSERT_EQ(expected.size(), 15U);
  for (const bool with_passes : {false, true}) {
    SCOPED_TRACE(with_passes ? "with passes" : "without passes");
    expect_close(compute_encoder(*model, batch, {}, with_passes), expected);
  }
}

TEST_P(EncoderTest, PaddingChangesNoBit) {
  const auto model = sample();
  const std::vector<int64_t> lengths = {33, 1, 20};
  const std::vector<float> padded = compute_encoder(*model, padded_batch(*model, lengths, 50));
  EXPECT_EQ(compute_encoder(*model, padded_batch(*model, lengths, 33)), padded);
  for (size_t s = 0; s < lengths.size(); ++s) {
    PaddedBatch alone = padded_batch(*model, lengths, lengths[s]);
    const auto keep = [&](std::vector<int32_t>& rows) {
      rows = {rows.begin() + static_cast<int64_t>(s) * lengths[s],
              rows.begin() + static_cast<int64_t>(s + 1) * lengths[s]};
    };
    keep(alone.tokens);
    keep(alone.token_types);
    const std::vector<float> scores = compute_encoder(*model, alone, {.documents = false});
    const auto from = padded.begin() + static_cast<int64_t>(s) * 5;
    EXPECT_EQ(scores, std::vector<float>(from, from + 5)) << s;
  }
}

TEST_P(EncoderTest, TheFirstTokenSeesTheLast) {
  const auto model = sample();
  PaddedBatch batch = padded_batch(*model, {20, 20}, 24);
  const std::vector<float> before = compute_encoder(*model, batch);
  batch.tokens[19] = batch.tokens[19] == 5 ? 6 : 5;  // the last of the first sequence
  std::vector<float> after = compute_encoder(*model, batch);
  for (size_t i = 0; i < 5; ++i) EXPECT_NE(after[i], before[i]);
  for (size_t i = 5; i < 10; ++i) EXPECT_EQ(after[i], before[i]);
  batch.tokens[20] = batch.tokens[20] == 5 ? 6 : 5;  // padding
  EXPECT_EQ(compute_encoder(*model, batch), after);
}

TEST_P(EncoderTest, TokenTypesThatAreAbsentAreZero) {
  const auto model = sample();
  PaddedBatch batch = padded_batch(*model, {20, 11}, 20);
  const std::vector<float> typed = compute_encoder(*model, batch);
  std::ranges::fill(batch.token_types, 0);
  const std::vector<float> zeros = compute_encoder(*model, batch);
  EXPECT_EQ(compute_encoder(*model, batch, {.types = false}), zeros);
  EXPECT_EQ(typed != zeros, model->num_token_types() > 1);
}

TEST_P(EncoderTest, HasNoHeadWithoutLabels) {
  const auto bare = sample(R"({"architectures": null})");
  EXPECT_EQ(bare->num_labels(), 0);
  EXPECT_TRUE(bare->ignores_tensor("classifier.weight"));
  for (const Parameter& p : bare->parameters())
    EXPECT_TRUE(p.name.starts_with(bare->base_prefix())) << p.name;
  const auto classifier = as_classifier(changed(GetParam()->sample, R"({"architectures": null})"),
                                        {io::ProblemType::kSingleLabel, {"a", "b"}});
  ASSERT_TRUE(classifier);
  EXPECT_EQ(classifier->fields().find("architectures")->items[0].text,
            std::string(GetParam()->class_name) + "ForSequenceClassification");
  EXPECT_EQ((*make_model(*classifier))->num_labels(), 2);
}

TEST_P(TextEncoderTest, HasAMaskedHeadWhereItsConfigNamesOne) {
  EXPECT_FALSE(sample()->has_masked_head());
  EXPECT_FALSE(sample()->tied_head());
  EXPECT_FALSE(sample(R"({"architectures": null})")->has_masked_head());
  const auto model = masked();
  ASSERT_TRUE(model->has_masked_head());
  EXPECT_EQ(model->num_labels(), 0);
  EXPECT_TRUE(model->unknown_fields().empty()) << "those of a classifier are read and left";
  expect_views_cover(*model);
  std::vector<std::string> head;
  for (const Parameter& p : model->parameters()) {
    EXPECT_NE(model->is_of_head(p.name), p.name.starts_with(model->base_prefix())) << p.name;
    EXPECT_FALSE(model->is_drawn_where_missing(p.name)) << p.name;
    if (model->is_of_head(p.name)) head.push_back(p.name + " " + to_string(p.shape));
  }
  const MaskedNames names = masked_names();
  EXPECT_THAT(head, testing::UnorderedElementsAre(names.dense + ".weight [60,60]", names.dense + ".bias [60]",
                                                  names.norm + ".weight [60]", names.norm + ".bias [60]",
                                                  names.bias + " [211]"));
  EXPECT_THAT(tensor_list(*model), Not(Contains(HasSubstr("pooler"))));
  const std::string pooler = std::string(model->base_prefix()) + "pooler.dense.weight";
  for (const std::string& ignored : {std::string("classifier.weight"), std::string("qa_outputs.bias")})
    EXPECT_TRUE(model->ignores_tensor(ignored)) << ignored;
  EXPECT_EQ(model->ignores_tensor(pooler), GetParam()->model_type != "distilbert");
  EXPECT_FALSE(model->ignores_tensor(std::string(model->base_prefix()) + "embeddings.more"));
  ASSERT_TRUE(model->tied_head());
  EXPECT_EQ(model->tied_head()->embedding,
            std::string(model->base_prefix()) + "embeddings.word_embeddings.weight");
  EXPECT_EQ(model->tied_head()->head, names.table);
}

/// The dense layer, gelu, the norm and the table of words with a bias, on rows of the stream, in double
/// precision; a place without a row is a row of zeros.
TEST_P(TextEncoderTest, ItsMaskedHeadIsTheFormula) {
  const auto model = masked();
  const MaskedNames names = masked_names();
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  reference::Interpreter interpreter;
  const auto input = [&](const char* name, const ir::Shape& shape, const std::vector<int32_t>& data) {
    interpreter.set(name, reference::tensor({ir::DType::kI32, shape}, {data.begin(), data.end()}));
    return b.state({name, {ir::DType::kI32, shape}, ir::StateClass::kInput});
  };
  const PaddedBatch batch = padded_batch(*model, {9, 6}, 9);
  const std::vector<int32_t> rows = {0, 8, -1, 5, -1, -1};
  const Forward forward{.tokens = input("tokens", {2, 9}, batch.tokens),
                        .doc_start = input("doc_start", {2, 9}, batch.doc_start)};
  const ir::ValueId hidden = model->hidden(b, forward);
  const ir::ValueId words = model->masked_logits(b, forward, input("masked", {2, 3}, rows));
  std::map<std::string, std::vector<float>> weights;
  for (const Parameter& p : model->parameters()) {
    const std::vector<float>& w = weights[p.name] = weights_of(p);
    interpreter.set(p.name, reference::tensor({ir::DType::kF32, p.shape}, {w.begin(), w.end()}));
  }
  for (const Status& status : {b.status(), interpreter.run(graph)})
    ASSERT_TRUE(status.ok()) << (status ? "" : status.error().message());
  const std::vector<double> stream = interpreter.value(hidden).data, logits = interpreter.value(words).data;
  ASSERT_EQ(interpreter.value(words).type.shape, (ir::Shape{2, 3, 211}));
  const std::vector<float>&dense = weights.at(names.dense + ".weight"),
        &dense_bias = weights.at(names.dense + ".bias"), &gain = weights.at(names.norm + ".weight"),
        &shift = weights.at(names.norm + ".bias"),
        &table = weights.at(std::string(model->tied_head()->embedding)), &bias = weights.at(names.bias);
  constexpr size_t kHidden = 60, kWords = 211;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> x(kHidden), h(kHidden);
    for (size_t k = 0; k < kHidden && rows[i] >= 0; ++k)
      x[k] = stream[(i / 3 * 9 + static_cast<size_t>(rows[i])) * kHidden + k];
    double mean = 0, variance = 0;
    for (size_t k = 0; k < kHidden; ++k) {
      double y = dense_bias[k];
      for (size_t j = 0; j < kHidden; ++j) y += dense[k * kHidden + j] * x[j];
      h[k] = y / 2 * (1 + std::erf(y / std::numbers::sqrt2));
      mean += h[k] / kHidden;
    }
    for (const double v : h) variance += (v - mean) * (v - mean) / kHidden;
    for (size_t v = 0; v < kWords; ++v) {
      double expected = bias[v];
      for (size_t k = 0; k < kHidden; ++k)
        expected +=
            table[v * kHidden + k] * ((h[k] - mean) / std::sqrt(variance + names.eps) * gain[k] + shift[k]);
      ASSERT_NEAR(logits[i * kWords + v], expected, 1e-9) << "row " << i << ", word " << v;
    }
  }
}

TEST_P(EncoderTest, MaskedRowsAreWhatTheInterpreterComputes) {
  const auto model = masked();
  const PaddedBatch batch = padded_batch(*model, {37, 1, 20}, 37);
  const std::vector<int32_t> rows = {0, 7, 36, 0, -1, -1, 2, 19, -1};
  const auto graph = [&] {
    ForwardGraph f;
    ir::Builder b(f.graph, ops::find_op);
    const auto input = [&](const char* name, const ir::Shape& shape) {
      return b.state({name, {ir::DType::kI32, shape}, ir::StateClass::kInput});
    };
    f.logits = model->masked_logits(
        b, {.tokens = input("tokens", {3, 37}), .doc_start = input("doc_start", {3, 37})},
        input("masked", {3, 3}));
    PLIMSOLL_CHECK(b.status().ok(), b.status() ? "" : b.status().error().message());
    f.type = b.type(f.logits);
    f.graph.declare_state({"logits", f.type, ir::StateClass::kOutput});
    b.assign("logits", f.logits);
    return f;
  };
  reference::Interpreter interpreter;
  const auto set = [&](const std::string& name, ir::DType dtype, const ir::Shape& shape, const auto& data) {
    interpreter.set(name, reference::tensor({dtype, shape}, {data.begin(), data.end()}));
  };
  for (const Parameter& p : model->parameters()) set(p.name, ir::DType::kF32, p.shape, weights_of(p));
  for (const Constant& c : model->constants()) set(c.name, ir::DType::kF32, c.shape, c.data);
  set("tokens", ir::DType::kI32, {3, 37}, batch.tokens);
  set("doc_start", ir::DType::kI32, {3, 37}, batch.doc_start);
  set("masked", ir::DType::kI32, {3, 3}, rows);
  const Status status = interpreter.run(graph().graph);
  ASSERT_TRUE(status.ok()) << (status ? "" : status.error().message());
  for (const bool with_passes : {false, true}) {
    SCOPED_TRACE(with_passes ? "with passes" : "without passes");
    CpuForward forward(*model, graph(), with_passes);
    forward.write_ids("masked", rows);
    expect_close(forward(batch.tokens, batch.doc_start), interpreter.find("logits")->data);
  }
}

TEST_P(TextEncoderTest, HasAHeadOfSpansWhereItsConfigNamesOne) {
  EXPECT_FALSE(sample()->has_span_head());
  EXPECT_FALSE(masked()->has_span_head());
  EXPECT_FALSE(sample(R"({"architectures": null})")->has_span_head());
  const auto model = asked();
  ASSERT_TRUE(model->has_span_head());
  EXPECT_FALSE(model->has_masked_head());
  EXPECT_FALSE(model->tied_head());
  EXPECT_TRUE(model->unknown_fields().empty()) << "those of a classifier are read and left";
  expect_views_cover(*model);
  std::vector<std::string> head;
  for (const Parameter& p : model->parameters()) {
    EXPECT_NE(model->is_of_head(p.name), p.name.starts_with(model->base_prefix())) << p.name;
    EXPECT_FALSE(model->ignores_tensor(p.name)) << p.name;
    if (model->is_of_head(p.name)) head.push_back(p.name + " " + to_string(p.shape));
  }
  EXPECT_THAT(head, testing::UnorderedElementsAre("qa_outputs.weight [2,60]", "qa_outputs.bias [2]"));
  EXPECT_EQ(model->head_module(), "qa_outputs");
  EXPECT_EQ(sample()->head_module(), "classifier");
  EXPECT_THAT(tensor_list(*model), Not(Contains(HasSubstr("pooler")))) << "as transformers";
  const std::string prefix(model->base_prefix());
  const bool has_pooler = GetParam()->model_type != "distilbert";
  std::vector<std::string> others = {"classifier.weight", masked_names().dense + ".weight",
                                     masked_names().bias};
  if (has_pooler) others.push_back(prefix + "pooler.dense.weight");
  for (const std::string& other : others) EXPECT_TRUE(model->ignores_tensor(other)) << other;
  EXPECT_FALSE(model->ignores_tensor("qa_outputs.weight"));
  EXPECT_FALSE(model->ignores_tensor(prefix + "embeddings.more"));
  const auto labels = asked(R"({"num_labels": 5, "id2label": {"0": "a", "1": "b", "2": "c"}})");
  EXPECT_THAT(tensor_list(*labels), Contains("qa_outputs.weight [2,60]")) << "whatever a classifier had";
}

/// A row of begins and one of ends, a linear map of every row of the stream with nothing before it.
TEST_P(TextEncoderTest, ItsHeadOfSpansIsTheFormula) {
  const auto model = asked();
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  reference::Interpreter interpreter;
  const auto input = [&](const char* name, const std::vector<int32_t>& data) {
    interpreter.set(name, reference::tensor({ir::DType::kI32, {2, 9}}, {data.begin(), data.end()}));
    return b.state({name, {ir::DType::kI32, {2, 9}}, ir::StateClass::kInput});
  };
  const PaddedBatch batch = padded_batch(*model, {9, 6}, 9);
  const Forward forward{.tokens = input("tokens", batch.tokens),
                        .doc_start = input("doc_start", batch.doc_start)};
  const ir::ValueId hidden = model->hidden(b, forward), spans = model->span_logits(b, forward);
  std::map<std::string, std::vector<float>> weights;
  for (const Parameter& p : model->parameters()) {
    const std::vector<float>& w = weights[p.name] = weights_of(p);
    interpreter.set(p.name, reference::tensor({ir::DType::kF32, p.shape}, {w.begin(), w.end()}));
  }
  for (const Status& status : {b.status(), interpreter.run(graph)})
    ASSERT_TRUE(status.ok()) << (status ? "" : status.error().message());
  ASSERT_EQ(interpreter.value(spans).type.shape, (ir::Shape{2, 9, 2}));
  const std::vector<double> stream = interpreter.value(hidden).data, logits = interpreter.value(spans).data;
  const std::vector<float>&weight = weights.at("qa_outputs.weight"), &bias = weights.at("qa_outputs.bias");
  constexpr size_t kHidden = 60;
  for (size_t row = 0; row < 18; ++row)
    for (size_t side = 0; side < 2; ++side) {
      double expected = bias[side];
      for (size_t k = 0; k < kHidden; ++k) expected += weight[side * kHidden + k] * stream[row * kHidden + k];
      EXPECT_NEAR(logits[row * 2 + side], expected, 1e-9) << "row " << row;
    }
}

TEST_P(EncoderTest, SpansAreWhatTheInterpreterComputes) {
  const auto model = asked();
  const PaddedBatch batch = padded_batch(*model, {37, 1, 20}, 37);
  reference::Interpreter interpreter;
  const auto set = [&](const std::string& name, ir::DType dtype, const ir::Shape& shape, const auto& data) {
    interpreter.set(name, reference::tensor({dtype, shape}, {data.begin(), data.end()}));
  };
  for (const Parameter& p : model->parameters()) set(p.name, ir::DType::kF32, p.shape, weights_of(p));
  for (const Constant& c : model->constants()) set(c.name, ir::DType::kF32, c.shape, c.data);
  set("tokens", ir::DType::kI32, {3, 37}, batch.tokens);
  set("doc_start", ir::DType::kI32, {3, 37}, batch.doc_start);
  set("token_types", ir::DType::kI32, {3, 37}, batch.token_types);
  const Status status = interpreter.run(span_graph(*model, 3, 37).graph);
  ASSERT_TRUE(status.ok()) << (status ? "" : status.error().message());
  for (const bool with_passes : {false, true}) {
    SCOPED_TRACE(with_passes ? "with passes" : "without passes");
    expect_close(spans_of(*model, batch, with_passes), interpreter.find("logits")->data);
  }
}

TEST_P(EncoderTest, PaddingChangesNoBitOfSpans) {
  const auto model = asked();
  const std::vector<int64_t> lengths = {33, 1, 20};
  const std::vector<float> wide = spans_of(*model, padded_batch(*model, lengths, 50)),
                           narrow = spans_of(*model, padded_batch(*model, lengths, 33));
  for (size_t s = 0; s < lengths.size(); ++s)
    for (size_t i = 0; i < static_cast<size_t>(lengths[s]) * 2; ++i)
      ASSERT_EQ(narrow[s * 66 + i], wide[s * 100 + i]) << "sequence " << s << ", value " << i;
}

TEST_P(EncoderTest, ATableOfTheHeadsOwnIsRefused) {
  const auto config = as_masked_lm(changed(GetParam()->sample, R"({"tie_word_embeddings": false})"), {});
  ASSERT_TRUE(config) << config.error().message();
  const auto made = make_model(*config);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kBadData);
  EXPECT_THAT(made.error().message(), HasSubstr("tie_word_embeddings"));
}

TEST_P(EncoderTest, IsNoCausalLanguageModel) {
  const io::ConfigJson config = changed(GetParam()->sample, R"({"architectures": null})");
  EXPECT_TRUE(is_encoder(config));
  const auto model = make_language_model(config);
  const Status causal = check_is_causal(**model, config);
  ASSERT_FALSE(causal);
  EXPECT_THAT(causal.error().message(), HasSubstr(std::string(GetParam()->model_type) + " is an encoder"));
  EXPECT_THAT(causal.error().hint, HasSubstr("sequence_classification"));
}

std::vector<const Family*> families(bool has_modernbert) {
  std::vector<const Family*> list;
  for (const auto family : kEncoderFamilies)
    if (has_modernbert || family != modernbert_family) list.push_back(&family());
  return list;
}
std::string name_of(const testing::TestParamInfo<const Family*>& test) {
  std::string name(test.param->model_type);
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Each, EncoderTest, testing::ValuesIn(families(true)), name_of);
INSTANTIATE_TEST_SUITE_P(Each, TextEncoderTest, testing::ValuesIn(families(false)), name_of);

}  // namespace
}  // namespace plimsoll::models
