#include "io/adapter_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "io/safetensors_bytes.h"
#include "io/temporary_folder.h"

namespace plimsoll::io {
namespace {

using testing::HasSubstr;

class AdapterFolder : public testing::Test {
 protected:
  AdapterFolder() { setenv("HF_HUB_CACHE", at("hub").c_str(), /*overwrite=*/1); }
  ~AdapterFolder() override { unsetenv("HF_HUB_CACHE"); }

  [[nodiscard]] std::string at(const std::string& name) const { return folder_.path(name); }
  void model(const std::string& name, const std::string& weights, const std::string& dtype = "F32") const {
    std::filesystem::create_directories(at(name));
    folder_.write(name + "/config.json", R"({"model_type": "llama"})");
    folder_.write(
        name + "/model.safetensors",
        safetensors_bytes("{" + header_entry("w", dtype, dtype == "F32" ? "1" : "2", "0,4") + "}", weights));
  }
  void cached_model(const std::string& owner, const std::string& name, const std::string& weights) const {
    const std::string base = "hub/models--" + owner + "--" + name;
    std::filesystem::create_directories(at(base + "/refs"));
    folder_.write(base + "/refs/main", "abc\n");
    model(base + "/snapshots/abc", weights);
  }
  void adapter(const std::string& name, const std::string& base) const {
    std::filesystem::create_directories(at(name));
    folder_.write(name + "/adapter_config.json",
                  base.empty() ? "{}" : R"({"base_model_name_or_path": ")" + base + "\"}");
    folder_.write(name + "/adapter_model.safetensors", "");
  }
  TemporaryFolder folder_;
};

TEST_F(AdapterFolder, OpensWithItsBaseWhereverThatLies) {
  model("models/base", "aaaa");
  cached_model("owner", "name", "bbbb");
  adapter("runs/one/final", "models/base");  // from a folder above the adapter's
  adapter("two", at("models/base"));
  adapter("three", "owner/name");
  for (const char* name : {"runs/one", "runs/one/final", "two"}) {
    const auto named = find_named_model(at(name));
    ASSERT_TRUE(named) << named.error().message();
    EXPECT_TRUE(std::filesystem::equivalent(named->model, at("models/base"))) << named->model;
    EXPECT_TRUE(is_adapter_folder(named->adapter)) << named->adapter;
    EXPECT_THAT(named->note.value_or(""), HasSubstr("its base is"));
  }
  const auto cached = find_named_model(at("three"));
  ASSERT_TRUE(cached);
  EXPECT_EQ(cached->model, at("hub/models--owner--name/snapshots/abc"));
  const auto whole = find_named_model(at("models/base"));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->adapter, "");
  EXPECT_FALSE(whole->note);
}

TEST_F(AdapterFolder, ABaseThatIsMissingIsNamedWithTheCommand) {
  adapter("runs/one/final", "models/gone");
  const auto named = find_named_model(at("runs/one"));
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code, ErrorCode::kBadData);
  EXPECT_THAT(named.error().what, HasSubstr("its base models/gone is not found"));
  EXPECT_THAT(named.error().hint, HasSubstr("--model BASE --adapter " + at("runs/one/final")));
  adapter("two", "");
  EXPECT_THAT(find_named_model(at("two")).error().what, HasSubstr("nothing names its base"));
}

TEST_F(AdapterFolder, IsNoWholeModel) {
  adapter("runs/one/final", "models/base");
  const auto whole = find_whole_model(at("runs/one"));
  ASSERT_FALSE(whole);
  EXPECT_THAT(whole.error().hint,
              HasSubstr("plimsoll merge --model models/base --adapter " + at("runs/one/final")));
  model("models/base", "aaaa");
  EXPECT_TRUE(find_whole_model(at("models/base")));
}

TEST_F(AdapterFolder, ARunsFolderMeansItsFinal) {
  adapter("runs/one/final", "x");
  EXPECT_EQ(*find_adapter_folder(at("runs/one")), at("runs/one/final"));
  EXPECT_EQ(*find_adapter_folder(at("runs/one/final")), at("runs/one/final"));
}

TEST_F(AdapterFolder, AnotherBaseIsTold) {
  model("base", "aaaa"), model("copy", "aaaa"), model("other", "bbbb"), model("half", "cccc", "BF16");
  cached_model("owner", "name", "aaaa"), cached_model("owner", "second", "dddd");
  adapter("one", at("base"));
  EXPECT_FALSE(other_base_note(at("one"), at("base")));
  EXPECT_FALSE(other_base_note(at("one"), at("other/../base/.")));
  EXPECT_FALSE(other_base_note(at("one"), at("copy")));  // moved, or copied
  EXPECT_FALSE(other_base_note(at("one"), at("half")));  // may be the same model in another dtype
  EXPECT_THAT(other_base_note(at("one"), at("other")).value_or(""),
              HasSubstr("was trained on " + at("base")));
  EXPECT_THAT(find_named_model(at("other"), at("one"))->note.value_or(""), HasSubstr("another model than"));

  adapter("hub-one", "owner/name");
  EXPECT_FALSE(other_base_note(at("hub-one"), at("hub/models--owner--name/snapshots/abc")));
  EXPECT_FALSE(other_base_note(at("hub-one"), at("copy")));  // its download under another name
  EXPECT_TRUE(other_base_note(at("hub-one"), at("hub/models--owner--second/snapshots/abc")));
  adapter("unknown", "gone/away");
  EXPECT_FALSE(other_base_note(at("unknown"), at("base")));
  EXPECT_TRUE(other_base_note(at("unknown"), at("hub/models--owner--name/snapshots/abc")));
  adapter("silent", "");
  EXPECT_FALSE(other_base_note(at("silent"), at("base")));
}

}  // namespace
}  // namespace plimsoll::io
