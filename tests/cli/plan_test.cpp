// plan and plan --diff as their user calls them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/run_plimsoll.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_folder.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class PlanTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string model = "model: {preset: gpt2, overrides: {n_layer: 1, n_embd: 48, vocab_size: 97}}\n";
    const std::string rest = "data: {train: x.npy, sequence_length: 16}\nruntime: {threads: 2}\n";
    EXPECT_TRUE(
        io::write_file_atomically(a_, model + rest + "training: {global_batch_size: 4, max_steps: 2}\n"));
    EXPECT_TRUE(io::write_file_atomically(
        b_,
        model + rest + "training: {global_batch_size: 4, max_steps: 2, optimizer: sgd, momentum: 0.9}\n"));
  }

  const io::TemporaryFolder folder_;
  const std::string a_ = folder_.path() + "/a.yaml", b_ = folder_.path() + "/b.yaml";
};

TEST_F(PlanTest, DiffShowsWhatASettingSaves) {
  const Outcome outcome = run_plimsoll({"plan", "--diff", a_, b_, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  const auto event = io::parse_json(outcome.out);
  ASSERT_TRUE(event) << outcome.out;
  const io::Tree &a = *event->find("a"), &b = *event->find("b");
  const int64_t parameters = a.find("classes")->find("parameters")->integer;
  EXPECT_EQ(a.find("classes")->find("optimizer_state")->integer, 2 * parameters);
  EXPECT_EQ(b.find("classes")->find("optimizer_state")->integer, parameters);
  std::vector<std::string> settings;
  for (const io::Tree& row : event->find("settings")->items) settings.push_back(row.find("path")->text);
  EXPECT_THAT(settings,
              testing::ElementsAre("training.optimizer", "training.momentum", "training.weight_decay"));
  // Each side is what plan says of it alone.
  const auto alone = io::parse_json(run_plimsoll({"plan", b_, "--json"}).out);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->find("process_peak_bytes")->integer, b.find("process_peak_bytes")->integer);
}

/// A card is planned for without being here, within its memory.
TEST_F(PlanTest, PlansForACardFromItsDataSheet) {
  const Outcome outcome = run_plimsoll({"plan", a_, "--json", "runtime.profile=RTX-4090"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto event = io::parse_json(outcome.out);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->find("choices")->find("rates")->text, "data sheet");
  EXPECT_GT(event->find("host")->find("peak_bytes")->integer, 0);
  EXPECT_FALSE(event->find("step")->find("parts")->members.empty());
  EXPECT_THAT(run_plimsoll({"plan", a_, "runtime.profile=t4"}).out,
              HasSubstr("data sheet rates times an efficiency"));
  const Outcome small = run_plimsoll({"plan", a_, "runtime.profile=t4", "memory.budget=900GiB",
                                      "memory.offload=none", "model.overrides.n_embd=12000",
                                      "model.overrides.n_head=120", "model.overrides.vocab_size=9700"});
  EXPECT_EQ(small.code, 69);
  EXPECT_THAT(small.err, HasSubstr("it takes a card with at least")) << "and which one";
  EXPECT_THAT(small.err, HasSubstr("runtime.profile=rtx5090"));
}

TEST_F(PlanTest, RefusesProfilesThatAreUnknownOrDamaged) {
  const Outcome unknown = run_plimsoll({"plan", a_, "runtime.profile=h10"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("h100"));
  const std::string file = folder_.path() + "/p.json";
  ASSERT_TRUE(io::write_file_atomically(file, "{\"plimsoll_machine_profile\": 9}"));
  EXPECT_EQ(run_plimsoll({"plan", a_, "runtime.profile=" + file}).code, 65);
}

/// Each remedy's settings planned by themselves fit, with that peak.
TEST_F(PlanTest, SaysWhatWouldMakeItFit) {
  const auto peak = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> arguments = {"plan", a_, "--json", "data.sequence_length=256"};
    arguments.insert(arguments.end(), overrides.begin(), overrides.end());
    return *io::parse_json(run_plimsoll(arguments).out);
  };
  for (const std::string micro : {"training.micro_batch_size=4", "training.micro_batch_size=1"}) {
    const int64_t needs = peak({micro, "memory.budget=1MiB"}).find("process_peak_bytes")->integer;
    const std::string budget = "memory.budget=" + std::to_string(needs - 50'000);
    const io::Tree plan = peak({micro, budget});
    EXPECT_FALSE(plan.find("fits")->boolean);
    const std::vector<io::Tree>& remedies = plan.find("remedies")->items;
    ASSERT_FALSE(remedies.empty()) << micro;
    EXPECT_EQ(remedies[0].find("note")->text == "bit-identical results", micro.back() == '4');
    for (const io::Tree& remedy : remedies) {
      std::vector<std::string> overrides = {micro, budget};
      for (const auto& [path, value] : remedy.find("settings")->members)
        overrides.push_back(path + "=" + value.text);
      const io::Tree changed = peak(overrides);
      ASSERT_NE(changed.find("fits"), nullptr);
      EXPECT_TRUE(changed.find("fits")->boolean) << overrides.back();
      EXPECT_EQ(changed.find("process_peak_bytes")->integer, remedy.find("peak_bytes")->integer)
          << overrides.back();
    }
  }
  const Outcome text = run_plimsoll({"plan", a_, "memory.budget=1MiB"});
  EXPECT_EQ(text.code, 69);
  EXPECT_THAT(text.out, testing::StartsWith("Does NOT fit: needs "));
}

TEST_F(PlanTest, ExplainsThePrecision) {
  const Outcome bf16 = run_plimsoll({"plan", a_, "training.precision=bf16", "--explain", "precision"});
  ASSERT_EQ(bf16.code, 0) << bf16.err;
  EXPECT_THAT(bf16.out, HasSubstr("bf16 products, f32 sums"));
  EXPECT_THAT(bf16.out, HasSubstr("bf16 products, f32 sums and softmax"));
  EXPECT_THAT(bf16.out, HasSubstr("a norm, a reduction or a loss"));
  EXPECT_THAT(bf16.out, HasSubstr("bf16, sum f32"));
  EXPECT_THAT(bf16.out, HasSubstr("There are no cast ops"));
  EXPECT_THAT(run_plimsoll({"plan", a_, "--explain", "precision"}).out,
              HasSubstr("Every op computes and stores fp32."));
  EXPECT_EQ(run_plimsoll({"plan", a_, "--explain", "speed"}).code, 2);
  const Outcome json =
      run_plimsoll({"plan", a_, "training.precision=tf32", "--explain", "precision", "--json"});
  const size_t second = json.out.find('\n') + 1;
  const auto event = io::parse_json(json.out.substr(second, json.out.find('\n', second) - second));
  ASSERT_TRUE(event) << json.out;
  EXPECT_EQ(event->find("event")->text, "precision");
  EXPECT_THAT(json.out, HasSubstr("tf32 products, f32 sums"));
  EXPECT_THAT(json.out, Not(HasSubstr("of tf32 operands"))) << "attention reads what is stored";
}

TEST_F(PlanTest, ExplainsOverridesOfThePrecision) {
  const std::string setting = "training.precision_overrides=";
  const Outcome found = run_plimsoll({"plan", a_, setting + "{lm_head: bf16}", "--explain", "precision"});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("precision_overrides: lm_head"));
  EXPECT_THAT(found.out, HasSubstr("bf16 products, f32 sums"));
  const Outcome none = run_plimsoll({"plan", a_, setting + "{lm_head: bf16, lm_haed: fp32}"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("matches 'lm_haed'"));
  EXPECT_THAT(none.err, HasSubstr("the nearest is lm_head"));
  const Outcome far = run_plimsoll({"plan", a_, setting + "{transfomer.*: bf16}"});
  EXPECT_THAT(far.err, HasSubstr("the nearest is transformer;"));
  const Outcome norm = run_plimsoll({"plan", a_, setting + "{rms_norm: bf16}"});
  EXPECT_EQ(norm.code, 2) << "a norm has no products";
}

/// A tied head has the table's weight; q, k and v lie in one.
TEST_F(PlanTest, OverridesGoByWeightsAsTheyAreKept) {
  const std::string path = folder_.path() + "/llama.yaml";
  ASSERT_TRUE(io::write_file_atomically(
      path,
      "model: {config: {model_type: llama, vocab_size: 64, hidden_size: 32, intermediate_size: 40, "
      "num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 1, max_position_embeddings: 64, "
      "rms_norm_eps: 1.0e-5, tie_word_embeddings: true}}\ndata: {train: x.npy, sequence_length: 16}\n"
      "training: {global_batch_size: 4, max_steps: 2}\n"));
  const auto plan = [&](const std::string& pattern) {
    return run_plimsoll({"plan", path, "training.precision_overrides={\"" + pattern + "\": bf16}"});
  };
  for (const char* tied : {"model.embed_tokens", "model.embed_tokens.weight", "embed_tokens"})
    EXPECT_EQ(plan(tied).code, 0) << tied;
  for (const auto& [part, storage] :
       {std::pair{"q_proj", " qkv_proj;"},
        {"*.v_proj.*", " qkv_proj;"},
        {"layers.*.up_proj", " layers.*.gate_up_proj;"},
        {"model.layers.1.self_attn.k_proj.weight", " model.layers.1.self_attn.qkv_proj.weight;"}}) {
    const Outcome refused = plan(part);
    EXPECT_EQ(refused.code, 2) << part;
    EXPECT_THAT(refused.err, HasSubstr(std::string("lie in") + storage));
    EXPECT_EQ(plan(std::string(storage).substr(1, std::string(storage).size() - 2)).code, 0) << storage;
  }
}

/// Events of a name, of plan --json.
std::vector<io::Tree> events_of(const std::string& out, const std::string& name) {
  std::vector<io::Tree> events;
  for (size_t begin = 0, end; (end = out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto event = io::parse_json(std::string_view(out).substr(begin, end - begin));
    EXPECT_TRUE(event) << out.substr(begin, end - begin);
    if (event && event->find("event")->text == name) events.push_back(std::move(*event));
  }
  return events;
}

TEST_F(PlanTest, ExplainsWhatANormStores) {
  const Outcome json =
      run_plimsoll({"plan", a_, "training.precision=bf16", "--explain", "precision", "--json"});
  const std::vector<io::Tree> events = events_of(json.out, "precision");
  const auto fused = std::find_if(events.begin(), events.end(),
                                  [](const io::Tree& e) { return e.find("op")->text == "add_layer_norm"; });
  ASSERT_NE(fused, events.end());
  EXPECT_EQ(io::to_json(*fused->find("stores")), R"({"y": "bf16", "sum": "f32"})");
  EXPECT_EQ(fused->find("why")->text, "a norm, a reduction or a loss; products alone read it");
  EXPECT_EQ(io::to_json(*events.front().find("stores")), R"({"y": "f32"})") << "the embedding";
}

/// A card's products sum a bias's gradient, and round no operand of their own.
TEST_F(PlanTest, CardsGetWhatTheirProductsDoBeside) {
  const auto step_on = [&](const std::string& profile) {
    const std::string folder = folder_.path() + "/" + profile;
    const Outcome outcome = run_plimsoll({"plan", a_, "runtime.profile=" + profile, "training.precision=bf16",
                                          "training.micro_batch_size=4", "--dump-ir", folder});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const auto& file : std::filesystem::directory_iterator(folder + "/step"))
      if (file.path().string().ends_with("-in-place.ir"))
        return *io::read_small_file(file.path().string(), 1 << 22);
    return std::string();
  };
  const std::string card = step_on("h100"), cpu = step_on("auto");
  EXPECT_THAT(card, HasSubstr("linear_dw_db("));
  EXPECT_THAT(cpu, HasSubstr("sum_rows("));
  EXPECT_THAT(cpu, Not(HasSubstr("linear_dw_db(")));
}

/// Attention in fp32 between products in bf16: what it reads is widened, its gradient rounded.
TEST_F(PlanTest, ExplainsCasts) {
  const std::vector<std::string> arguments = {
      "plan",      a_,         "training.precision=bf16", "training.precision_overrides.attention=fp32",
      "--explain", "precision"};
  const Outcome text = run_plimsoll(arguments);
  EXPECT_THAT(text.out, testing::ContainsRegex("program +cast of"));
  EXPECT_THAT(text.out, testing::ContainsRegex("step +linear +h.0.attn"));
  EXPECT_THAT(text.out, HasSubstr("linear stores its products' bf16; attention_packed reads what is stored"));
  std::vector<std::string> with_json = arguments;
  with_json.emplace_back("--json");
  const std::vector<io::Tree> casts = events_of(run_plimsoll(with_json).out, "precision_cast");
  ASSERT_EQ(casts.size(), 3U);
  const io::Tree &read = casts[0], &again = casts[1], &gradient = casts[2];
  EXPECT_EQ(read.find("op")->text, "linear");
  EXPECT_EQ(read.find("layer")->text, "h.0.attn");
  EXPECT_EQ(io::to_json(*read.find("shape")), "[4, 16, 144]");
  EXPECT_EQ(read.find("from")->text + " " + read.find("to")->text, "bf16 f32");
  EXPECT_EQ(read.find("uses")->integer, 1);
  EXPECT_TRUE(again.find("recomputed")->boolean);
  EXPECT_EQ(gradient.find("op")->text, "attention_packed_grad");
  EXPECT_EQ(gradient.find("to")->text, "bf16");
  std::vector<std::string> readers;  // in the order of the schedule
  for (const io::Tree& reader : gradient.find("readers")->items) readers.push_back(reader.text);
  EXPECT_THAT(readers, testing::UnorderedElementsAre("sum_rows", "linear", "linear_dw"));
}

TEST_F(PlanTest, ExplainsTheMemoryOnAnyDevice) {
  for (const std::string device : {"cpu", "discrete"})
    for (const std::string micro : {"4", "2"}) {
      const std::vector<std::string> arguments = {
          "plan",   a_,      "runtime.device=" + device, "training.micro_batch_size=" + micro, "--explain",
          "memory", "--json"};
      const Outcome outcome = run_plimsoll(arguments);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const io::Tree plan = events_of(outcome.out, "plan").at(0),
                     timeline = events_of(outcome.out, "memory_timeline").at(0);
      const io::Tree& bytes = *plan.find("device");
      const int64_t peak = bytes.find("persistent_bytes")->integer + bytes.find("arena_bytes")->integer;
      EXPECT_EQ(timeline.find("peak")->find("total_bytes")->integer, peak);
      EXPECT_EQ(timeline.find("program")->text, plan.find("peak")->find("program")->text);
      for (const auto& [label, at_peak] : timeline.find("peak")->find("bytes")->members)
        EXPECT_EQ(at_peak.integer, plan.find("classes")->find(label)->integer) << label;
      EXPECT_EQ(timeline.find("formula")->find("plan_bytes")->integer,
                bytes.find("peak_bytes")->integer +
                    (device == "cpu" ? plan.find("host")->find("peak_bytes")->integer : 0));
    }
}

TEST_F(PlanTest, TheExplainedMemoryFitsItsColumnsAndIsAPictureToo) {
  const std::string svg = folder_.path() + "/memory.svg";
  const Outcome outcome = run_plimsoll({"plan", a_, "--explain", "memory", "--svg", svg});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = outcome.out.substr(outcome.out.find("Memory while "));
  for (const char* word :
       {" v\n", "- forward -", "largest tensors", "wpe", "P x D_param", "the plan", "update"})
    EXPECT_THAT(text, HasSubstr(word));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; })) << line;
  }
  const auto picture = io::read_small_file(svg, 1 << 20);
  ASSERT_TRUE(picture);
  EXPECT_THAT(*picture, testing::StartsWith("<svg "));
}

/// And says nothing on stdout then.
TEST_F(PlanTest, AFileThatCannotBeWrittenIsAnErrorOfIo) {
  const std::string nowhere = folder_.path() + "/no/such/folder/file";
  for (const std::vector<std::string>& output :
       {std::vector<std::string>{"--explain", "memory", "--svg", nowhere}, {"--snapshot", nowhere}}) {
    std::vector<std::string> arguments = {"plan", a_};
    arguments.insert(arguments.end(), output.begin(), output.end());
    const Outcome outcome = run_plimsoll(arguments);
    EXPECT_EQ(outcome.code, 74);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr(nowhere));
  }
  EXPECT_EQ(run_plimsoll({"plan", a_, "--svg", nowhere}).code, 2) << "without --explain memory";
  EXPECT_EQ(run_plimsoll({"plan", "--diff", a_, b_, "--snapshot", nowhere}).code, 2);
  EXPECT_EQ(run_plimsoll({"plan", "--diff", a_, b_, "--explain", "memory"}).code, 2);
}

TEST_F(PlanTest, ExplainsHowWeightsAreKept) {
  const auto weight = [&](const std::vector<std::string>& settings, const std::string& name) {
    std::vector<std::string> arguments = {"plan", a_, "--explain", "precision", "--json"};
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    const Outcome outcome = run_plimsoll(arguments);
    for (const io::Tree& event : events_of(outcome.out, "precision_weight")) {
      if (event.find("weight")->text != name) continue;
      std::string text;
      for (const char* field : {"stored", "master", "gradient", "moments", "rounding", "products"})
        text += io::to_json(*event.find(field)) + " ";
      return text;
    }
    return outcome.err;
  };
  const std::string down = "transformer.h.0.mlp.c_proj.weight", norm = "transformer.ln_f.weight";
  EXPECT_EQ(weight({}, down), R"("f32" null "f32" "f32" null ["f32"] )");
  EXPECT_EQ(weight({"training.precision=bf16", "training.state.weights=bf16"}, down),
            R"("bf16" "f32" "f32" "f32" null ["bf16"] )");
  EXPECT_EQ(weight({"training.precision=bf16", "training.state.weights=bf16", "training.state.gradients=bf16",
                    "training.state.moments=bf16", "training.state.master_weights=false",
                    "training.precision_overrides.c_proj=fp32"},
                   down),
            R"("bf16" null "bf16" "bf16" "stochastic" ["f32"] )");
  EXPECT_EQ(weight({"training.precision=tf32", "training.optimizer=sgd"}, norm),
            R"("f32" null "f32" null null [] )");
}

/// Rows tell layers apart where not all are alike.
TEST_F(PlanTest, ExplainsLayersInRanges) {
  const Outcome outcome = run_plimsoll({"plan", a_, "model.overrides.n_layer=5",
                                        "training.precision_overrides.h.2=bf16", "--explain", "precision"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("h.2.mlp "));
  EXPECT_THAT(outcome.out, HasSubstr("h.0-1,3-4.mlp "));
  EXPECT_THAT(outcome.out, HasSubstr("transformer.h.*.ln_1.weight "));
}

/// Layers are named as the checkpoint names what lies in them, ops without weights too; a tied head lies
/// outside, although its weight does not.
TEST_F(PlanTest, OverridesBelowAModule) {
  for (const char* pattern : {"transformer", "transformer.*", "transformer.h.*", "h.0", "*.h.?.*"}) {
    const Outcome found =
        run_plimsoll({"plan", a_, std::string("training.precision_overrides={\"") + pattern + "\": bf16}",
                      "--explain", "precision", "--json"});
    ASSERT_EQ(found.code, 0) << pattern << found.err;
    int linear = 0, attention = 0, head = 0;
    for (size_t begin = 0, end; (end = found.out.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string line = found.out.substr(begin, end - begin);
      if (line.find("precision_overrides: ") == std::string::npos) continue;
      linear += line.find("\"linear\"") != std::string::npos ? 1 : 0;
      attention += line.find("\"attention") != std::string::npos ? 1 : 0;
      head += line.find("lm_head") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(linear, 4) << pattern;
    EXPECT_EQ(attention, 1) << pattern;
    EXPECT_EQ(head, 0) << pattern;
  }
}

TEST_F(PlanTest, OverridesGoOverBoth) {
  const Outcome outcome = run_plimsoll({"plan", "--diff", a_, b_, "training.optimizer=adam", "momentum=0"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("No setting differs"));
}

TEST_F(PlanTest, APlanThatDoesNotFitIsAFindingOfTheDiff) {
  const Outcome outcome = run_plimsoll({"plan", "--diff", a_, b_, "memory.budget=1MiB"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(run_plimsoll({"plan", a_, "memory.budget=1MiB"}).code, 69);
}

TEST_F(PlanTest, SaysWhichFileIsMissing) {
  const Outcome outcome = run_plimsoll({"plan", "--diff", folder_.path() + "/none.yaml", b_});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("none.yaml"));
  EXPECT_EQ(run_plimsoll({"plan", "--diff", a_}).code, 2);
}

/// The points of the frontier are plans that its budgets give; the run's own budget does not matter to it.
TEST_F(PlanTest, FrontierOfARunThatDoesNotFit) {
  const std::string svg = folder_.path() + "/frontier.svg";
  const Outcome outcome =
      run_plimsoll({"plan", a_, "--frontier", "--svg", svg, "--json", "memory.budget=1MiB"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<io::Tree> events = objects(outcome.out);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].find("event")->text, "frontier");
  ASSERT_FALSE(events[0].find("points")->items.empty());
  const io::Tree& point = events[0].find("points")->items.front();
  const std::string budget = "memory.budget=" + std::to_string(point.find("budget_bytes")->integer);
  const auto alone = io::parse_json(run_plimsoll({"plan", a_, "--json", budget}).out);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->find("process_peak_bytes")->integer, point.find("peak_bytes")->integer);
  EXPECT_EQ(io::to_json(*alone->find("choices")), io::to_json(*point.find("choices")));
  EXPECT_THAT(*io::read_small_file(svg, 1 << 20), HasSubstr("</svg>"));
  EXPECT_EQ(run_plimsoll({"plan", a_, "--frontier", "--svg", folder_.path() + "/no/such.svg"}).code, 74);
}

TEST_F(PlanTest, SweepsSettings) {
  const Outcome outcome =
      run_plimsoll({"plan", a_, "--sweep", "data.sequence_length=16,32", "--sweep", "lora.r=max",
                    "memory.budget=64MiB", "lora.target_modules=all-linear", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<io::Tree> events = objects(outcome.out);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].find("rows")->items.size(), 2u);
  EXPECT_EQ(run_plimsoll({"plan", a_, "--sweep", "data.sequence_lenght=1,2"}).code, 2);
}

}  // namespace
}  // namespace plimsoll::cli
