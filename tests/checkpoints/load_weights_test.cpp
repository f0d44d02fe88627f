// A small Llama and a small GPT-2 filled from files written here: every type, both spellings of names,
// shards, any number of threads; and files that are of another model.
#include "checkpoints/load_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "io/safetensors_writer.h"
#include "io/temporary_folder.h"
#include "models/image_model.h"
#include "models/lora.h"
#include "planner/programs/step_programs.h"
#include "runtime/session_testing.h"
#include "tasks/sequence_classification.h"

namespace plimsoll::checkpoints {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kLlama =
    R"({"model_type": "llama", "vocab_size": 37, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": false})";
constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 37, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 16,
        "layer_norm_epsilon": 1e-5, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0})";

std::unique_ptr<models::Model> model_of(const char* json) {
  auto model = models::make_model(*io::parse_config_json(json, "config.json"));
  EXPECT_TRUE(model) << model.error().message();
  return std::move(model).value();
}

/// A session that has the model's parameters.
struct Target {
  cpu::CpuDevice device{1};
  std::unique_ptr<runtime::Session> session;
  explicit Target(const models::Model& model, bool masters = false) {
    const auto task = tasks::make_causal_lm(/*documents=*/false);
    planner::StepOptions options{.micro_batch_size = 1, .sequence_length = 8, .task = task.get()};
    options.optimizer.state.masters = masters;
    auto programs = planner::build_training_programs(model, options, device.target());
    EXPECT_TRUE(programs) << programs.error().message();
    auto created = runtime::Session::create(device, std::move(programs->session));
    EXPECT_TRUE(created) << created.error().message();
    session = std::move(created).value();
  }
};

/// Tensors by name: what a test puts into a file.
struct Stored {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
using StoredTensors = std::map<std::string, Stored>;

/// A number that tells name and index apart, exact in every type.
float value_at(const std::string& name, size_t i) {
  const size_t hash = std::hash<std::string>()(name);
  return static_cast<float>(static_cast<int>((hash + i * 7) % 201) - 100) / 8.0F;
}

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_as(std::string& bytes, const std::string& dtype, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (dtype == "F32") return append(bytes, value);
  if (dtype == "F64") return append(bytes, static_cast<double>(value));
  if (dtype == "BF16") return append(bytes, static_cast<uint16_t>(bits >> 16));
  // f16: the values here are normal or zero.
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t half = magnitude == 0 ? 0 : (magnitude - (112U << 23)) >> 13;
  append(bytes, static_cast<uint16_t>((bits >> 16 & 0x8000) | half));
}

StoredTensors tensors_of(const models::Model& model, const std::string& dtype) {
  StoredTensors tensors;
  for (const auto& parameter : model.parameters())
    for (const auto& view : parameter.views) {
      Stored stored{dtype, {view.shape.dims().begin(), view.shape.dims().end()}, {}};
      for (size_t i = 0; i < static_cast<size_t>(view.shape.num_elements()); ++i)
        append_as(stored.bytes, dtype, value_at(view.name, i));
      tensors[view.name] = std::move(stored);
    }
  return tensors;
}

void write_file(const std::string& path, const StoredTensors& tensors) {
  std::vector<io::SafetensorsEntry> entries;
  for (const auto& [name, stored] : tensors) entries.push_back({name, stored.dtype, stored.shape});
  auto writer = io::SafetensorsWriter::create(path, entries);
  ASSERT_TRUE(writer) << writer.error().message();
  size_t index = 0;
  for (const auto& [name, stored] : tensors)
    ASSERT_TRUE(writer->write(index++, std::as_bytes(std::span(stored.bytes))));
  ASSERT_TRUE(writer->finish());
}

/// The same of a classifier.
struct ClassifierTarget {
  cpu::CpuDevice device{1};
  std::unique_ptr<runtime::Session> session;
  explicit ClassifierTarget(const models::Model& model) {
    const auto task = tasks::make_sequence_classification(
        {io::ProblemType::kSingleLabel, io::default_label_names(model.num_labels())});
    const planner::StepOptions options{.micro_batch_size = 1, .sequence_length = 8, .task = task.get()};
    auto programs = planner::build_training_programs(model, options, device.target());
    EXPECT_TRUE(programs) << programs.error().message();
    auto created = runtime::Session::create(device, std::move(programs->session));
    EXPECT_TRUE(created) << created.error().message();
    session = std::move(created).value();
  }
};

Result<LoadReport> load(const models::Model& model, const std::string& folder, Target& target,
                        int threads = 2) {
  PLIMSOLL_ASSIGN(const io::ModelWeights weights, io::ModelWeights::open(folder));
  return load_weights(model, weights, *target.session, threads);
}

void expect_loaded(const models::Model& model, const runtime::Session& session) {
  for (const auto& parameter : model.parameters())
    for (const auto& view : parameter.views) {
      const int64_t row = parameter.shape.num_elements() / parameter.shape.dim(0);
      const float* data = session_testing::on_cpu<float>(session, parameter.name).data() + view.row * row;
      for (size_t i = 0; i < static_cast<size_t>(view.shape.num_elements()); ++i)
        ASSERT_EQ(data[i], value_at(view.name, i)) << view.name << " " << i;
    }
}

void expect_loaded(const models::Model& model, const Target& target) {
  expect_loaded(model, *target.session);
}

TEST(LoadWeights, FillsEveryViewFromEveryType) {
  for (const char* config : {kLlama, kGpt2}) {
    const auto model = model_of(config);
    for (const char* dtype : {"F32", "F16", "BF16", "F64"})
      for (const int threads : {1, 3}) {
        const io::TemporaryFolder folder;
        write_file(folder.path("model.safetensors"), tensors_of(*model, dtype));
        Target target(*model);
        const auto report = load(*model, folder.path(), target, threads);
        ASSERT_TRUE(report) << report.error().message();
        EXPECT_EQ(report->memory_bytes, model->num_parameters() * 4);
        EXPECT_EQ(report->file_bytes, model->num_parameters() * io::safetensors_dtype_bytes(dtype));
        expect_loaded(*model, target);
      }
  }
}

/// Elements of a 16-bit state against the values, to nearest.
void expect_rounded(const models::Model& model, const Target& target) {
  for (const auto& parameter : model.parameters())
    for (const auto& view : parameter.views) {
      const int64_t row = parameter.shape.num_elements() / parameter.shape.dim(0);
      const auto* data =
          session_testing::on_cpu<uint16_t>(*target.session, parameter.name).data() + view.row * row;
      for (size_t i = 0; i < static_cast<size_t>(view.shape.num_elements()); ++i) {
        const auto bits = std::bit_cast<uint32_t>(value_at(view.name, i));
        ASSERT_EQ(data[i], (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16) << view.name << " " << i;
      }
    }
}

/// With masters these have the file's values, and the weights are theirs, rounded; without, the file's
/// rounded.
TEST(LoadWeights, RoundsIntoWeightsOf16Bits) {
  const auto model = model_of(kLlama);
  model->keep_in(ir::DType::kBf16);
  for (const char* dtype : {"F32", "F64", "F16", "BF16"})
    for (const bool masters : {false, true}) {
      const io::TemporaryFolder folder;
      write_file(folder.path("model.safetensors"), tensors_of(*model, dtype));
      Target target(*model, masters);
      const auto report = load(*model, folder.path(), target, 3);
      ASSERT_TRUE(report) << report.error().message();
      EXPECT_EQ(report->memory_bytes, model->num_parameters() * (masters ? 6 : 2));
      expect_rounded(*model, target);
      if (!masters) continue;
      const auto& view = model->parameters()[0].views[0];
      const float* master =
          session_testing::on_cpu<float>(*target.session, "master." + model->parameters()[0].name).data();
      for (size_t i = 0; i < 40; ++i) ASSERT_EQ(master[i], value_at(view.name, i));
    }
}

TEST(LoadWeights, LargeTensorsGoInPieces) {
  const auto model = model_of(
      R"({"model_type": "gpt2", "vocab_size": 50021, "n_embd": 48, "n_layer": 1, "n_head": 4, "n_positions": 16,
          "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0})");
  for (const char* dtype : {"BF16", "F64"}) {
    const io::TemporaryFolder folder;
    write_file(folder.path("model.safetensors"), tensors_of(*model, dtype));
    Target target(*model);
    ASSERT_TRUE(load(*model, folder.path(), target, 3));
    expect_loaded(*model, target);
  }
}

TEST(LoadWeights, AcceptsNamesWithoutTheBasePrefix) {
  const auto model = model_of(kGpt2);
  StoredTensors bare;
  for (auto& [name, stored] : tensors_of(*model, "F32"))
    bare[name.substr(std::strlen("transformer."))] = stored;
  // What older files carry besides.
  bare["h.0.attn.bias"] = {"BOOL", {1, 1, 16, 16}, std::string(256, '\1')};
  bare["h.1.attn.masked_bias"] = {"F32", {}, std::string(4, '\0')};
  const io::TemporaryFolder folder;
  write_file(folder.path("model.safetensors"), bare);
  Target target(*model);
  const auto report = load(*model, folder.path(), target);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(report->ignored, ElementsAre("h.0.attn.bias", "h.1.attn.masked_bias"));
  expect_loaded(*model, target);
}

constexpr const char* kBert =
    R"({"architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 37, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40, "max_position_embeddings": 16,
        "num_labels": 3})";

/// As files of the bare model that were converted from TensorFlow have them.
TEST(LoadWeights, ReadsBertsNormsByTheirOldNames) {
  const auto model = model_of(kBert);
  StoredTensors old;
  for (auto& [name, stored] : tensors_of(*model, "F32")) {
    std::string there = name.starts_with("bert.") ? name.substr(std::strlen("bert.")) : name;
    for (const auto& [ours, theirs] :
         {std::pair("LayerNorm.weight", "LayerNorm.gamma"), std::pair("LayerNorm.bias", "LayerNorm.beta")})
      if (const size_t at = there.find(ours); at != std::string::npos) there = there.substr(0, at) + theirs;
    old[there] = stored;
  }
  old["embeddings.position_ids"] = {"I64", {1, 16}, std::string(128, '\0')};
  old["cls.predictions.bias"] = {"F32", {37}, std::string(148, '\0')};
  const io::TemporaryFolder folder;
  write_file(folder.path("model.safetensors"), old);
  const ClassifierTarget target(*model);
  const io::ModelWeights weights = *io::ModelWeights::open(folder.path());
  const auto report = load_weights(*model, weights, *target.session, 1);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(report->ignored, ElementsAre("cls.predictions.bias", "embeddings.position_ids"));
  EXPECT_THAT(report->drawn, testing::IsEmpty());
  expect_loaded(*model, *target.session);
}

/// A masked language model's files have no pooler: it is drawn beside a fresh head, and beside no other.
TEST(LoadWeights, APoolerMayBeMissingBesideAFreshHead) {
  const auto model = model_of(kBert);
  StoredTensors tensors = tensors_of(*model, "F32");
  const io::TemporaryFolder with_pooler, without;
  write_file(with_pooler.path("model.safetensors"), tensors);
  std::erase_if(tensors, [](const auto& e) { return e.first.find("pooler") != std::string::npos; });
  tensors["classifier.weight"] = {"F32", {9, 24}, std::string(size_t{4} * 9 * 24, '\0')};
  write_file(without.path("model.safetensors"), tensors);
  const io::ModelWeights whole = *io::ModelWeights::open(with_pooler.path()),
                         lacking = *io::ModelWeights::open(without.path());
  const auto names = [](const WeightMatch& match) {
    std::vector<std::string> drawn;
    for (const auto* view : match.drawn) drawn.push_back(view->name);
    return drawn;
  };
  EXPECT_THAT(names(*match_weights(*model, lacking, /*draws_head=*/true)),
              ElementsAre("bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight",
                          "classifier.bias"));
  EXPECT_THAT(names(*match_weights(*model, whole, /*draws_head=*/true)),
              ElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_TRUE(check_weights(*model, lacking, /*draws_head=*/true));
  const Status kept = check_weights(*model, lacking);
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().what, HasSubstr("bert.pooler.dense.weight"));
  std::string bare = kBert;
  bare.replace(bare.find("ForSequenceClassification"), std::strlen("ForSequenceClassification"), "Model");
  EXPECT_TRUE(check_weights(*model_of(bare.c_str()), lacking));
}

/// What an adapter's files would not hold is not drawn.
TEST(LoadWeights, AnAdapterKeepsWhatIsDrawn) {
  const auto adapted = [](std::vector<std::string> saved) {
    auto model = model_of(kBert);
    EXPECT_TRUE(models::add_adapters(*model, {.modules_to_save = std::move(saved)}, "bert"));
    return model;
  };
  const auto model = model_of(kBert);
  StoredTensors tensors = tensors_of(*model, "F32");
  std::erase_if(tensors, [](const auto& e) { return e.first.find("pooler") != std::string::npos; });
  const io::TemporaryFolder folder;
  write_file(folder.path("model.safetensors"), tensors);
  const io::ModelWeights weights = *io::ModelWeights::open(folder.path());
  const Status lost = check_weights(*adapted({}), weights, /*draws_head=*/true);
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().hint, HasSubstr("lora.modules_to_save=[bert.pooler.dense]"));
  EXPECT_TRUE(check_weights(*adapted({"bert.pooler.dense"}), weights, /*draws_head=*/true));
}

/// timm's files have query, key and value as rows of one tensor.
TEST(LoadWeights, FindsPartsOfATensorThatHoldsSeveral) {
  auto made = models::make_image_model(*io::parse_config_json(
      R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 12, "num_labels": 3,
          "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20, "image_size": 8, "patch_size": 4})",
      "config.json"));
  ASSERT_TRUE(made) << made.error().message();
  const models::ImageModel& model = **made;
  StoredTensors tensors;
  for (const auto& parameter : model.parameters())
    for (const auto& view : parameter.views) {
      Stored& stored = tensors[model.other_name(view.name)];
      const ir::Shape shape = view.file_shape();
      const bool begins = stored.bytes.empty();
      stored.dtype = "F32";
      if (begins) stored.shape = {shape.dims().begin(), shape.dims().end()};
      if (!begins) stored.shape.front() += shape.dim(0);
      for (size_t i = 0; i < static_cast<size_t>(shape.num_elements()); ++i)
        append(stored.bytes, value_at(view.name, i));
    }
  ASSERT_EQ(tensors.at("blocks.1.attn.qkv.weight").shape, (std::vector<int64_t>{36, 12}));
  const io::TemporaryFolder folder;
  write_file(folder.path("model.safetensors"), tensors);
  const auto weights = io::ModelWeights::open(folder.path());
  ASSERT_TRUE(weights);
  const auto match = match_weights(model, *weights);
  ASSERT_TRUE(match);
  ASSERT_TRUE(match->fits()) << weights_do_not_fit(*match, *weights).message();
  for (const WeightSource& source : match->sources) {
    std::vector<float> values(static_cast<size_t>(source.view->shape.num_elements()));
    ASSERT_TRUE(
        source.weight.file->read(*source.weight.tensor, 0, std::as_writable_bytes(std::span(values))));
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], value_at(source.view->name, i)) << source.view->name << " " << i;
  }
  const auto whole = match_weights(*model_of(kLlama), *weights);
  EXPECT_FALSE(whole->fits());
}

TEST(LoadWeights, ReadsShards) {
  const auto model = model_of(kLlama);
  const io::TemporaryFolder folder;
  std::array<StoredTensors, 3> shards;
  std::string map;
  size_t i = 0;
  for (auto& [name, stored] : tensors_of(*model, "BF16")) {
    const size_t shard = i++ % 3;
    map += (map.empty() ? "\"" : ", \"") + name + "\": \"shard-" + std::to_string(shard) + "\"";
    shards[shard][name] = stored;
  }
  for (size_t s = 0; s < 3; ++s) write_file(folder.path("shard-" + std::to_string(s)), shards[s]);
  folder.write("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  Target target(*model);
  const auto report = load(*model, folder.path(), target);
  ASSERT_TRUE(report) << report.error().message();
  expect_loaded(*model, target);
}

TEST(LoadWeights, ATiedHeadMayStandInTheFile) {
  std::string tied(kLlama);
  tied.replace(tied.find("false"), 5, "true");
  const auto model = model_of(tied.c_str());
  StoredTensors tensors = tensors_of(*model, "F32");
  ASSERT_FALSE(tensors.contains("lm_head.weight"));
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  const io::TemporaryFolder folder;
  write_file(folder.path("model.safetensors"), tensors);
  Target target(*model);
  ASSERT_TRUE(load(*model, folder.path(), target));
  expect_loaded(*model, target);
  // Or there alone: what is tied is one tensor under either name.
  StoredTensors head_alone = tensors;
  head_alone.erase("model.embed_tokens.weight");
  write_file(folder.path("model.safetensors"), head_alone);
  Target other(*model);
  ASSERT_TRUE(load(*model, folder.path(), other));
  expect_loaded(*model, other);
  // A head of its own is not passed over.
  tensors["lm_head.weight"].bytes.back() = static_cast<char>(tensors["lm_head.weight"].bytes.back() ^ 1);
  write_file(folder.path("model.safetensors"), tensors);
  const auto refused = load(*model, folder.path(), target);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBadData);
  EXPECT_THAT(refused.error().hint, HasSubstr("tie_word_embeddings=false"));
}

TEST(LoadWeights, NamesWhatDoesNotFit) {
  const auto model = model_of(kLlama);
  const auto fresh = [&] { return tensors_of(*model, "F32"); };
  struct Row {
    std::function<void(StoredTensors&)> change;
    std::vector<std::string> what;
  };
  const Row rows[] = {
      {[](StoredTensors& t) { t.erase("model.norm.weight"); }, {"1 missing (model.norm.weight [24])"}},
      {[](StoredTensors& t) {
         std::erase_if(t, [](const auto& e) { return e.first.starts_with("model.layers."); });
       },
       {"18 missing (", ", …)"}},
      {[](StoredTensors& t) {
         t["model.norm.weight"].shape = {4, 6};
       },
       {"1 of another shape (model.norm.weight F32 [4, 6], expected [24])"}},
      {[](StoredTensors& t) {
         t["model.norm.weight"] = {"I32", {24}, std::string(96, '\0')};
       },
       {"1 of a type that is not read (model.norm.weight I32 [24])"}},
      {[](StoredTensors& t) {
         t["model.norm.weight"] = {"F8_E4M3", {24}, std::string(24, '\0')};
       },
       {"model.norm.weight F8_E4M3 [24]"}},
      {[](StoredTensors& t) {
         t["visual.proj"] = {"F32", {2}, std::string(8, '\0')};
       },
       {"1 that the model does not have (visual.proj F32 [2])"}},
      {[](StoredTensors& t) {
         t.erase("model.norm.weight");
         t["model.norm.bias"] = {"F32", {24}, std::string(96, '\0')};
       },
       {"1 missing (model.norm.weight [24]); 1 that the model does not have (model.norm.bias F32 [24])"}},
  };
  Target target(*model);
  for (const Row& row : rows) {
    StoredTensors tensors = fresh();
    row.change(tensors);
    const io::TemporaryFolder folder;
    write_file(folder.path("model.safetensors"), tensors);
    const auto report = load(*model, folder.path(), target);
    ASSERT_FALSE(report) << row.what[0];
    EXPECT_EQ(report.error().code, ErrorCode::kBadData);
    for (const std::string& what : row.what) EXPECT_THAT(report.error().what, HasSubstr(what));
    EXPECT_EQ(report.error().where, folder.path());
    EXPECT_FALSE(report.error().hint.empty());
  }
}

TEST(LoadWeights, ACutFileIsAnError) {
  const auto model = model_of(kLlama);
  const io::TemporaryFolder folder;
  const std::string path = folder.path("model.safetensors");
  write_file(path, tensors_of(*model, "BF16"));
  const auto weights = io::ModelWeights::open(folder.path());
  ASSERT_TRUE(weights);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  Target target(*model);
  const auto report = load_weights(*model, *weights, *target.session, 2);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kBadData);
  EXPECT_THAT(report.error().where, HasSubstr(path));
}

TEST(LoadWeights, KeepsNaN) {
  const auto model = model_of(kLlama);
  StoredTensors tensors = tensors_of(*model, "F16");
  auto& bytes = tensors["model.norm.weight"].bytes;
  bytes[2] = '\x01', bytes[3] = '\x7e';  // a NaN, then an infinity
  bytes[4] = '\x00', bytes[5] = '\xfc';
  const io::TemporaryFolder folder;
  write_file(folder.path("model.safetensors"), tensors);
  Target target(*model);
  ASSERT_TRUE(load(*model, folder.path(), target));
  const float* norm = session_testing::on_cpu<float>(*target.session, "model.norm.weight").data();
  EXPECT_TRUE(std::isnan(norm[1]));
  EXPECT_TRUE(std::isinf(norm[2]) && norm[2] < 0);
}

}  // namespace
}  // namespace plimsoll::checkpoints
