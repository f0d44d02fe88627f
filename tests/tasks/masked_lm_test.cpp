// Masked language modelling as a task: its inputs, the loss against the formula on the rows that are masked,
// and what its source makes of streams and of packed documents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "backends/reference/interpreter.h"
#include "datasets/shard_documents.h"
#include "io/temporary_folder.h"
#include "models/language_model.h"
#include "ops/loss.h"
#include "ops/op_list.h"
#include "ops/structure.h"
#include "tasks/task_list.h"

namespace plimsoll::tasks {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kVocabulary = 31, kLongest = 16;
constexpr int32_t kMaskToken = 4, kFirstWord = 5;

class MaskedLmTask : public testing::Test {
 protected:
  /// Rules that mask much: capacities of short sequences are the sequences.
  static datasets::MaskingRules rules(uint64_t seed = 3) { return {.probability = 0.5, .seed = seed}; }

  [[nodiscard]] std::unique_ptr<Task> task(const datasets::MaskingRules& masking, bool documents = true,
                                           int64_t longest = kLongest) const {
    auto made = masked_lm().make({.model = *model_,
                                  .model_config = *config_,
                                  .sequence_length = longest,
                                  .packs_documents = documents,
                                  .masking = masking});
    EXPECT_TRUE(made) << (made ? "" : made.error().message());
    return std::move(*made);
  }

  /// Ids below 5 are special; the others begin words.
  static datasets::SourceOptions options(bool augments) {
    datasets::TokenKinds kinds{kMaskToken, std::string(kFirstWord, datasets::TokenKinds::kSpecial)};
    kinds.kinds.resize(kVocabulary, datasets::TokenKinds::kWordStart);
    datasets::SourceOptions options;
    options.pack.sequence_length = kLongest;
    options.augments = augments;
    options.token_kinds = std::make_shared<const datasets::TokenKinds>(std::move(kinds));
    return options;
  }

  /// What a source reads of one example.
  struct Read {
    std::vector<int32_t> tokens, places, targets, doc_start;
    datasets::ExampleCounts counts;

    /// The tokens before they were masked.
    [[nodiscard]] std::vector<int32_t> restored() const {
      std::vector<int32_t> all = tokens;
      for (size_t i = 0; i < places.size(); ++i)
        if (places[i] >= 0) all[static_cast<size_t>(places[i])] = targets[i];
      return all;
    }
  };
  static Read read(const datasets::ExampleSource& source, const Task& task, int64_t index, int64_t epoch = 0,
                   int64_t length = kLongest) {
    std::vector<std::vector<int32_t>> parts;
    std::vector<std::span<std::byte>> row;
    for (const datasets::TensorSpec& input : task.inputs())
      parts.emplace_back(static_cast<size_t>(input.example_bytes(length)) / 4, -7);
    row.reserve(parts.size());
    for (auto& part : parts) row.push_back(std::as_writable_bytes(std::span(part)));
    std::vector<std::byte> scratch(static_cast<size_t>(source.scratch_bytes()));
    const auto counts = source.read_in_epoch(index, epoch, row, scratch);
    EXPECT_TRUE(counts) << (counts ? "" : counts.error().message());
    Read read{parts[0], parts[1], parts[2], parts[3], {}};
    if (counts) read.counts = *counts;
    const auto masked = std::ranges::count_if(read.places, [](int32_t place) { return place >= 0; });
    EXPECT_EQ(read.counts.targets, masked);
    for (size_t i = 0; i < read.places.size(); ++i) {
      EXPECT_EQ(read.places[i] < 0, read.targets[i] == datasets::kNoTarget);
      EXPECT_LT(read.places[i], read.counts.units) << "padding is never masked";
    }
    return read;
  }

  /// A stream of 53 tokens: three sequences of 16, and five more.
  [[nodiscard]] std::string stream_file() const {
    const std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (53,), }\n";
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    bytes += header;
    for (const int32_t id : stream()) bytes.append(reinterpret_cast<const char*>(&id), 4);
    return folder_.write("stream.npy", bytes);
  }
  static std::vector<int32_t> stream() {
    std::vector<int32_t> ids(53);
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = kFirstWord + static_cast<int32_t>(i * 7) % static_cast<int32_t>(kVocabulary - kFirstWord);
    return ids;
  }

  /// Documents of 6, 7 and 11 words: the first two share a sequence.
  [[nodiscard]] std::string shard_file() const {
    std::vector<datasets::Document> documents;
    int32_t id = kFirstWord;
    for (const size_t length : {6, 7, 11}) {
      std::vector<int32_t> ids(length);
      for (int32_t& token : ids) token = id++ % 26 + kFirstWord;
      documents.push_back({ids, std::vector<uint8_t>(length, 1)});
    }
    datasets::write_shard(folder_.path("a.shard"), documents, {kVocabulary, 9, true});
    return folder_.path("a.shard");
  }

  [[nodiscard]] std::unique_ptr<datasets::ExampleSource> open(const Task& task, const std::string& file,
                                                              datasets::SourceOptions how) const {
    how.cache_folder = folder_.path("cache");
    auto source = task.open_source({.paths = {file}}, how);
    EXPECT_TRUE(source) << (source ? "" : source.error().message());
    return std::move(*source);
  }

  const io::TemporaryFolder folder_;
  const Result<io::ConfigJson> config_ = io::parse_config_json(
      R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 31, "hidden_size": 12,
          "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
          "max_position_embeddings": 16, "type_vocab_size": 2})",
      "config.json");
  const std::unique_ptr<models::Model> model_ = *models::make_model(*config_);
};

TEST_F(MaskedLmTask, InputsHaveTheirShapesAndPadding) {
  const auto masked = task({.probability = 0.25}, true, 512);
  std::vector<std::string> lines;
  for (const datasets::TensorSpec& input : masked->inputs())
    lines.push_back(input.name + " " + to_string(input.batch_type(6, 128).shape));
  EXPECT_THAT(lines, ElementsAre("tokens [6,128]", "masked [6,168]", "targets [6,168]", "doc_start [6,128]"));
  EXPECT_EQ(masked->logits_shape(6), (ir::Shape{6, 168, kVocabulary}));
  EXPECT_EQ(masked->unit().name, "tokens");
  EXPECT_EQ(masked->loss_unit(), "masked tokens");
  EXPECT_TRUE(masked->has_perplexity());
  const auto padding = [&](size_t input) {
    std::vector<int32_t> values(3);
    datasets::pad_example(masked->inputs()[input], std::as_writable_bytes(std::span(values)));
    return values;
  };
  EXPECT_THAT(padding(1), Each(datasets::kNoPlace));
  EXPECT_THAT(padding(2), Each(ops::kIgnoreTarget));
  EXPECT_THAT(padding(3), ElementsAre(0, 1, 2)) << "documents of one token";
}

/// What the model says of every row is what it says of the masked ones, and the loss is their cross-entropy.
TEST_F(MaskedLmTask, HasCrossEntropyOnTheMaskedRows) {
  const auto masked = task({.probability = 0.25}, true, 12);
  constexpr size_t kRows = 12;  // for each of two sequences
  ASSERT_EQ(masked->logits_shape(2), (ir::Shape{2, kRows, kVocabulary}));
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  reference::Interpreter interpreter;
  const auto state = [&](const std::string& name, const ir::TensorType& type, std::vector<double> data,
                         ir::StateClass kind) {
    interpreter.set(name, reference::tensor(type, std::move(data)));
    return b.state({name, type, kind});
  };
  std::vector<double> tokens(24);
  std::iota(tokens.begin(), tokens.end(), 3);
  std::vector<double> doc_start(24, 0), places(2 * kRows, ops::kNoRow),
      targets(2 * kRows, ops::kIgnoreTarget);
  std::fill_n(doc_start.begin() + 4, 6, 4);
  doc_start[10] = 10, doc_start[11] = 11;
  places[0] = 1, places[1] = 4, places[2] = 9, places[kRows] = 6;
  targets[0] = 30, targets[1] = 0, targets[2] = 7, targets[kRows] = 11;
  const std::vector<std::vector<double>> data = {tokens, places, targets, doc_start};
  std::vector<ir::ValueId> inputs;
  for (size_t i = 0; i < data.size(); ++i)
    inputs.push_back(state("batch." + masked->inputs()[i].name, masked->inputs()[i].batch_type(2, 12),
                           data[i], ir::StateClass::kInput));
  const auto scalar = [&](const char* name, double value) {
    return state(name, {ir::DType::kF32, {1}}, {value}, ir::StateClass::kScalars);
  };
  for (const models::Parameter& p : model_->parameters()) {
    ir::RefTensor w = reference::constant({ir::DType::kF32, p.shape}, 0);
    for (size_t i = 0; i < w.data.size(); ++i) w.data[i] = std::sin(static_cast<double>(i) * 0.7 + 1) / 2;
    interpreter.set(p.name, w);
  }
  const Outputs outputs = masked->forward(
      b, *model_, inputs, {.grad_scale = scalar("scale", 1), .acc = scalar("acc", 10), .logits = true});
  const ir::ValueId same = masked->logits(b, *model_, inputs);
  const ir::ValueId every =
      models::language_model(*model_).logits(b, {.tokens = inputs[0], .doc_start = inputs[3]});
  for (const Status& status : {b.status(), interpreter.run(graph)})
    ASSERT_TRUE(status.ok()) << (status ? "" : status.error().message());
  const ir::RefTensor logits = interpreter.value(outputs.logits), all = interpreter.value(every);
  ASSERT_EQ(logits.type.shape, masked->logits_shape(2));
  ASSERT_EQ(all.type.shape, (ir::Shape{2, 12, kVocabulary}));
  EXPECT_EQ(interpreter.value(same).data, logits.data);
  double expected = 10;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}, kRows}) {
    double sum = 0;
    const size_t row = (i / kRows * 12 + static_cast<size_t>(places[i])) * kVocabulary, at = i * kVocabulary;
    for (size_t v = 0; v < kVocabulary; ++v) {
      EXPECT_NEAR(logits.data[at + v], all.data[row + v], 1e-12);
      sum += std::exp(logits.data[at + v]);
    }
    expected += std::log(sum) - logits.data[at + static_cast<size_t>(targets[i])];
  }
  EXPECT_NEAR(interpreter.value(outputs.loss).data[0], expected, 1e-10);
}

TEST_F(MaskedLmTask, MasksAStream) {
  const auto masked = task(rules(), false);
  const auto source = open(*masked, stream_file(), options(true));
  ASSERT_EQ(source->num_examples(), 3);
  EXPECT_EQ(source->num_units(), 53);
  const std::vector<int32_t> ids = stream();
  for (int64_t i = 0; i < 3; ++i) {
    const Read r = read(*source, *masked, i);
    EXPECT_EQ(r.counts.units, kLongest);
    EXPECT_GT(r.counts.targets, 0);
    EXPECT_EQ(r.restored(), std::vector(ids.begin() + i * kLongest, ids.begin() + (i + 1) * kLongest));
    EXPECT_NE(r.tokens, r.restored());
    EXPECT_THAT(r.doc_start, Each(0)) << "one document";
  }
}

/// Behind its tokens the last one has columns of padding, each a document of its own.
TEST_F(MaskedLmTask, PaddingColumnsAreDocumentsOfTheirOwn) {
  const auto masked = task(rules(), false);
  datasets::SourceOptions how = options(true);
  how.pack.keep_tail = true;
  const auto source = open(*masked, stream_file(), how);
  ASSERT_EQ(source->num_examples(), 4);
  const Read last = read(*source, *masked, 3);
  EXPECT_EQ(last.counts.units, 5);
  EXPECT_THAT(last.doc_start, ElementsAre(0, 0, 0, 0, 0, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  const std::vector<int32_t> ids = stream();
  const std::vector<int32_t> restored = last.restored();
  EXPECT_TRUE(std::equal(ids.begin() + 48, ids.end(), restored.begin()));
  std::vector<std::byte> scratch(static_cast<size_t>(source->scratch_bytes()));
  EXPECT_EQ(*source->length(3, scratch), 5);
  // In a bucket for eight tokens, with room for more masked ones than it has tokens.
  const Read brief = read(*source, *masked, 3, 0, 8);
  EXPECT_THAT(brief.doc_start, ElementsAre(0, 0, 0, 0, 0, 5, 6, 7));
  EXPECT_EQ(brief.places, last.places) << "a bucket changes no mask";
  EXPECT_TRUE(std::equal(brief.tokens.begin(), brief.tokens.begin() + 5, last.tokens.begin()));
}

TEST_F(MaskedLmTask, DocumentsOfASequenceAreKeptApartOrJoined) {
  const std::string shard = shard_file();
  for (const bool documents : {true, false}) {
    const auto masked = task(rules(), documents);
    const auto source = open(*masked, shard, options(true));
    ASSERT_EQ(source->num_examples(), 2);
    const Read both = read(*source, *masked, 0);
    EXPECT_EQ(both.counts.units, 13);
    const int32_t second = documents ? 6 : 0;
    EXPECT_THAT(std::vector(both.doc_start.begin(), both.doc_start.begin() + 6), Each(0));
    EXPECT_THAT(std::vector(both.doc_start.begin() + 6, both.doc_start.begin() + 13), Each(second));
    EXPECT_THAT(std::vector(both.doc_start.begin() + 13, both.doc_start.end()), ElementsAre(13, 14, 15));
    const std::vector<int32_t> restored = both.restored();
    for (size_t i = 0; i < 13; ++i) EXPECT_EQ(restored[i], static_cast<int32_t>(5 + i) % 26 + kFirstWord);
    const Read third = read(*source, *masked, 1);
    EXPECT_EQ(third.counts.units, 11);
    EXPECT_THAT(std::vector(third.doc_start.begin() + 11, third.doc_start.end()),
                ElementsAre(11, 12, 13, 14, 15));
    EXPECT_NE(source->pack_report(), nullptr);
    EXPECT_THAT(source->index_path(), HasSubstr(folder_.path("cache")));
  }
}

TEST_F(MaskedLmTask, TrainingMasksAnewInEachEpochAndWithEachSeed) {
  const auto masked = task(rules()), again = task(rules()), other = task(rules(4));
  const std::string file = stream_file();
  const auto source = open(*masked, file, options(true));
  const auto seeded = open(*other, file, options(true));
  std::set<std::vector<int32_t>> seen;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    const Read r = read(*source, *masked, 1, epoch);
    EXPECT_EQ(read(*open(*again, file, options(true)), *again, 1, epoch).tokens, r.tokens);
    EXPECT_TRUE(seen.insert(r.places).second) << epoch;
    EXPECT_TRUE(seen.insert(read(*seeded, *other, 1, epoch).places).second) << epoch;
  }
  std::vector<std::byte> scratch(static_cast<size_t>(source->scratch_bytes()));
  EXPECT_EQ(*source->fingerprint(scratch), *seeded->fingerprint(scratch)) << "the same data";
  datasets::SourceOptions of_second = options(true);
  of_second.source = 1;
  EXPECT_TRUE(seen.insert(read(*open(*masked, file, of_second), *masked, 1).places).second)
      << "of a mixture's other source";
  EXPECT_EQ(masked->source_bytes(), kVocabulary) << "a source keeps the kind of each id";
}

TEST_F(MaskedLmTask, EvaluationMasksAreAlwaysTheSame) {
  const auto masked = task(rules()), other = task(rules(4));
  const std::string file = stream_file();
  const auto source = open(*masked, file, options(false)), seeded = open(*other, file, options(false));
  for (int64_t index = 0; index < 3; ++index) {
    const Read first = read(*source, *masked, index);
    for (const auto* same : {&source, &seeded})
      for (const int64_t epoch : {0, 7}) {
        const Read r = read(**same, *masked, index, epoch);
        EXPECT_EQ(r.tokens, first.tokens) << epoch;
        EXPECT_EQ(r.places, first.places) << epoch;
      }
  }
  EXPECT_NE(read(*source, *masked, 0).places, read(*source, *masked, 1).places);
}

TEST_F(MaskedLmTask, IdsBeyondTheModelAreRefused) {
  const auto masked = task(rules());
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (16,), }\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  const std::string file = folder_.write("beyond.npy", bytes + header + std::string(16, '\x1f'));
  const auto source = masked->open_source({.paths = {file}}, options(true));
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().what, HasSubstr("is id 31, outside of the vocabulary of 31"));
}

TEST_F(MaskedLmTask, DrawsWhatTheModelTakes) {
  const auto masked = task({}, true, 128);
  EXPECT_EQ(masked->drawn_counts().units, 128);
  EXPECT_EQ(masked->drawn_counts().targets, 19) << "0.15 of them";
  EXPECT_EQ(task({.probability = 0.001}, true, 8)->drawn_counts().targets, 1) << "never none";
  for (const int64_t length : {128, 8}) {
    const auto draw = [&](uint64_t seed) {
      std::vector<std::vector<int32_t>> parts;
      std::vector<std::span<std::byte>> row;
      for (const datasets::TensorSpec& input : masked->inputs())
        parts.emplace_back(static_cast<size_t>(input.example_bytes(length)) / 4, -7);
      row.reserve(parts.size());
      for (auto& part : parts) row.push_back(std::as_writable_bytes(std::span(part)));
      masked->draw(seed, row);
      return parts;
    };
    const auto parts = draw(5);
    EXPECT_EQ(draw(5), parts);
    EXPECT_NE(draw(6), parts);
    for (const int32_t token : parts[0]) EXPECT_TRUE(token >= 0 && token < kVocabulary);
    EXPECT_THAT(parts[3], Each(0));
    const auto count = static_cast<size_t>(std::min<int64_t>(length, 19));
    EXPECT_GT(parts[1][count - 1], length / 2) << "over all of the sequence";
    for (size_t i = 0; i < parts[1].size(); ++i) {
      if (i >= count) {
        EXPECT_EQ(parts[1][i], datasets::kNoPlace);
        EXPECT_EQ(parts[2][i], datasets::kNoTarget);
        continue;
      }
      EXPECT_TRUE(parts[1][i] >= 0 && parts[1][i] < length) << parts[1][i];
      EXPECT_TRUE(i == 0 || parts[1][i] > parts[1][i - 1]);
      EXPECT_TRUE(parts[2][i] >= 0 && parts[2][i] < kVocabulary);
    }
  }
}

TEST_F(MaskedLmTask, IsForEncodersOfText) {
  const auto check = [](const char* model) {
    const Status status = masked_lm().check(*io::parse_config_json(model, "config.json"));
    return status ? std::string() : status.error().message() + " | " + status.error().hint;
  };
  EXPECT_EQ(check(R"({"model_type": "roberta"})"), "");
  EXPECT_EQ(check(R"({"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"]})"), "");
  EXPECT_THAT(check(R"({"model_type": "llama"})"), HasSubstr("set task=causal_lm"));
  EXPECT_THAT(check(R"({"model_type": "vit"})"), HasSubstr("the model is no encoder of text"));
}

}  // namespace
}  // namespace plimsoll::tasks
