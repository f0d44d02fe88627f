// Typed getters over a config.json, and the hub's cache.
#include "io/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "io/hub_cache.h"
#include "temporary_folder.h"

namespace plimsoll::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ConfigJson config(std::string_view text) { return *parse_config_json(text, "config.json"); }

TEST(ConfigJson, NamesFieldValueAndRange) {
  const ConfigJson c =
      config(R"({"a": -3, "b": "x", "c": 1.5, "d": true, "e": null, "f": 1e30, "g": [1, "y"], "h": {}})");
  EXPECT_EQ(c.integer("a", {1, 10}).error().message(),
            "a is -3, expected an integer from 1 to 10: config.json");
  EXPECT_EQ(c.integer("b", {1, 10}).error().what, "b is \"x\", expected an integer from 1 to 10");
  EXPECT_EQ(c.integer("c", {1}).error().what, "c is 1.5, expected an integer of at least 1");
  EXPECT_EQ(c.integer("e", {1}).error().what, "e is missing, expected an integer of at least 1");
  EXPECT_EQ(c.number("d", {0, 1}).error().what, "d is true, expected a number from 0 to 1");
  EXPECT_FALSE(c.integer("f", {1}));
  EXPECT_FALSE(c.boolean("a", false));
  EXPECT_FALSE(c.string("a"));
  EXPECT_FALSE(c.integers("g", {0, 10}));
  EXPECT_FALSE(c.object("g"));
  EXPECT_FALSE(c.require("a", Tree::of(int64_t{3}), ""));
  EXPECT_EQ(c.integer("a", {1, 10}).error().code, ErrorCode::kBadData);
  EXPECT_THAT(c.integer("a", {1, 10}).error().hint, HasSubstr("model.overrides.a"));
  const ConfigJson outer = *parse_config_json(R"({"rope": {"b": "x"}})", "config.json");
  EXPECT_THAT((*outer.object("rope"))->integer("b", {1, 10}).error().hint,
              HasSubstr("model.overrides.rope.b"));
}

TEST(ConfigJson, TakesDefaultsForMissingAndNull) {
  const ConfigJson c = config(R"({"n": null, "eos": 2, "list": [3, 4], "one": 1.0})");
  EXPECT_EQ(*c.integer("n", {1, 2}, 7), 7);
  EXPECT_EQ(*c.number("n", {1, 2}, 0.5), 0.5);
  EXPECT_EQ(*c.boolean("x", true), true);
  EXPECT_EQ(*c.string("x", "silu"), "silu");
  EXPECT_EQ(*c.optional_integer("n", {0}), std::nullopt);
  EXPECT_THAT(*c.integers("eos", {0}), ElementsAre(2));
  EXPECT_THAT(*c.integers("list", {0}), ElementsAre(3, 4));
  EXPECT_THAT(*c.integers("x", {0}), IsEmpty());
  EXPECT_TRUE(c.require("one", Tree::of(int64_t{1}), ""));
  EXPECT_TRUE(c.require("absent", Tree::of(int64_t{1}), ""));
  EXPECT_TRUE(c.require_absent({"n", "absent"}));
  EXPECT_FALSE(c.require_absent({"eos"}));
}

TEST(ConfigJson, RemembersWhatNobodyRead) {
  const ConfigJson c = config(R"({"a": 1, "b": 2, "c": 3})");
  ASSERT_TRUE(c.integer("b", {0}));
  c.ignore({"c"});
  EXPECT_THAT(c.unread_fields(), ElementsAre("a"));
}

TEST(ConfigJson, KnowsTheFamily) {
  EXPECT_EQ(*config(R"({"model_type": "llama"})").model_type(), "llama");
  EXPECT_EQ(*config(R"({"architectures": ["LlamaForCausalLM"]})").model_type(), "llama");
  EXPECT_EQ(*config(R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"})").model_type(), "gpt2");
  EXPECT_EQ(*config(R"({"architectures": ["Qwen2ForSequenceClassification"]})").model_type(), "qwen2");
  EXPECT_EQ(*config(R"({"architectures": ["GPT2ForSequenceClassification"]})").model_type(), "gpt2");
  EXPECT_FALSE(
      config(R"({"architectures": ["LlamaForTokenClassification"], "model_type": "llama"})").model_type());
  EXPECT_EQ(*config(R"({"architectures": ["ViTForImageClassification"]})").model_type(), "vit");
  EXPECT_EQ(*config(R"({"architectures": ["Dinov2Model"]})").model_type(), "dinov2");
  EXPECT_FALSE(config(R"({"architectures": ["LlamaModel"], "model_type": "llama"})").model_type());
  EXPECT_EQ(*config(R"({"architectures": ["BertForMaskedLM"]})").model_type(), "bert");
  EXPECT_EQ(*config(R"({"architectures": ["BertModel"], "model_type": "bert"})").model_type(), "bert");
  EXPECT_FALSE(config(R"({"architectures": ["BertLMHeadModel"], "model_type": "bert"})").model_type());
  EXPECT_FALSE(config(R"({"architectures": 3})").model_type());
  EXPECT_FALSE(config(R"({"model_type": 3})").model_type());
  EXPECT_FALSE(config("{}").model_type());
}

TEST(ReadConfigJson, RefusesWhatIsNoObject) {
  const TemporaryFolder folder;
  for (const char* text : {"", "[]", "3", "{", "{\"a\":1}x"}) {
    const auto read = read_config_json(folder.write("config.json", text));
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kBadData);
    EXPECT_THAT(read.error().where, HasSubstr("config.json"));
  }
  EXPECT_EQ(read_config_json(folder.path("none.json")).error().code, ErrorCode::kBadData);
}

TEST(HubCache, FindsTheMainSnapshot) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("models--org--name/refs"));
  std::filesystem::create_directories(folder.path("models--org--name/snapshots/abc"));
  folder.write("models--org--name/refs/main", "abc\n");
  ::setenv("HF_HUB_CACHE", folder.path().c_str(), 1);
  EXPECT_EQ(*find_cached_model("org/name"), folder.path("models--org--name/snapshots/abc"));
  const auto missing = find_cached_model("org/other");
  ::unsetenv("HF_HUB_CACHE");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kBadData);
  EXPECT_EQ(missing.error().hint, "download it first: hf download org/other");
}

TEST(HubCache, AMissingFolderIsNoHubId) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("models/smollm"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto near = find_model_folder("models/smolm"), far = find_model_folder("models/gpt2"),
             id = find_model_folder("nobody/has-this-one");
  std::filesystem::current_path(before);
  for (const auto* missing : {&near, &far, &id}) {
    ASSERT_FALSE(*missing);
    EXPECT_EQ(missing->error().code, ErrorCode::kBadData);
    EXPECT_THAT(missing->error().hint, HasSubstr("hf download "));
  }
  EXPECT_EQ(near.error().what, "there is no such folder");
  EXPECT_THAT(near.error().hint, HasSubstr("did you mean models/smollm?"));
  EXPECT_EQ(far.error().what, "there is no such folder");
  EXPECT_THAT(far.error().hint, HasSubstr("look into models"));
  EXPECT_THAT(id.error().what, HasSubstr("Hugging Face cache"));
  EXPECT_EQ(find_model_folder("run.yaml").error().what, "there is no such file");
}

TEST(HubCache, ARunsFolderMeansItsFinalModel) {
  const TemporaryFolder folder;
  for (const char* name : {"run/checkpoint-9", "run/checkpoint-20", "run/final", "tokenizer"})
    std::filesystem::create_directories(folder.path(name));
  for (const char* name : {"run/checkpoint-9/config.json", "run/checkpoint-20/config.json"})
    folder.write(name, "{}");
  const auto stopped = find_model_folder(folder.path("run"));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kBadData);
  EXPECT_THAT(stopped.error().hint, HasSubstr("checkpoint-20"));
  folder.write("run/final/config.json", "{}");
  EXPECT_EQ(*find_model_folder(folder.path("run")), folder.path("run/final"));
  EXPECT_EQ(*find_model_folder(folder.path("run/checkpoint-9")), folder.path("run/checkpoint-9"));
  EXPECT_EQ(*find_model_folder(folder.path("tokenizer")), folder.path("tokenizer"));
}

TEST(HubCache, KnowsAnIdFromAPath) {
  for (const char* id : {"gpt2", "org/name", "HuggingFaceTB/SmolLM2-1.7B"}) EXPECT_TRUE(is_hub_id(id)) << id;
  for (const char* path : {"", "./gpt2", "/x/y", "a/b/c", "org/", "a b", "../x"})
    EXPECT_FALSE(is_hub_id(path)) << path;
}

}  // namespace
}  // namespace plimsoll::io
